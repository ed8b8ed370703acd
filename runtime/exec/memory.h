// What an executor keeps from call to call: requests, scratch, encoded chunks, landing space.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/heap.h"
#include "runtime/codec/decode.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/waiter.h"
#include "runtime/transport/transport.h"

namespace tern {

/// Grows to the largest call's shape and never shrinks. Requests stay in place while a call runs.
struct Executor::Memory {
  struct Shape {
    size_t n_recvs = 0;
    size_t n_sends = 0;
    size_t landing = 0;
    size_t scratch = 0;
    size_t wire = 0;
  };

  Memory(Heap& heap, Clock::duration most_spin)
      : spin(most_spin), scratch_(heap), wire_(heap), landing_(heap) {}

  Status reserve(const Shape& shape) {
    if (recvs_.size() < shape.n_recvs) recvs_.resize(shape.n_recvs);
    for (auto& sends : sends_) {
      sends.n = 0;
      if (sends.requests.size() < shape.n_sends) sends.requests.resize(shape.n_sends);
    }
    TERN_TRY(scratch_.reserve(shape.scratch));
    TERN_TRY(wire_.reserve(shape.wire));
    return landing_.reserve(shape.landing);
  }

  void start_slot() {
    n_recvs_ = 0;
    landed_ = 0;
  }
  RecvRequest& next_recv() { return recvs_[n_recvs_++]; }
  RecvRequest& recv(int idx) { return recvs_[static_cast<size_t>(idx)]; }
  std::byte* land(size_t n_bytes) {
    std::byte* place = landing_.data() + landed_;
    landed_ += n_bytes;
    return place;
  }

  // Sends live for two slots: those of a slot are awaited in the next one.
  SendRequest& next_send(size_t slot) {
    Sends& sends = sends_[slot % 2];
    return sends.requests[sends.n++];
  }
  void drop_send(size_t slot) { --sends_[slot % 2].n; }
  void clear_sends(size_t slot) { sends_[slot % 2].n = 0; }
  std::span<SendRequest> sends(size_t slot) {
    Sends& sends = sends_[slot % 2];
    return {sends.requests.data(), sends.n};
  }
  /// Calls `f` for every send under way, older slot's first; false as soon as one f() is false.
  template <class F>
  bool each_pending_send(size_t slot, const F& f) {
    for (size_t which : {slot + 1, slot}) {
      for (SendRequest& request : sends(which)) {
        if (!f(request)) return false;
      }
    }
    return true;
  }

  std::byte* scratch() const { return scratch_.data(); }
  std::byte* wire() const { return wire_.data(); }

  SpinBudget spin;
  std::vector<const void*> sources;  ///< operands of the operation at hand
  std::vector<Share> shares;         ///< the same where some are encoded

 private:
  struct Sends {
    std::vector<SendRequest> requests;
    size_t n = 0;
  };

  class Block {
   public:
    explicit Block(Heap& heap) : heap_(heap) {}
    ~Block() { release(); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    std::byte* data() const { return data_; }
    Status reserve(size_t n_bytes) {
      if (n_bytes <= n_bytes_) return {};
      release();
      TERN_ASSIGN(void* memory, heap_.allocate(n_bytes));
      data_ = static_cast<std::byte*>(memory);
      n_bytes_ = n_bytes;
      return {};
    }

   private:
    void release() {
      if (data_ != nullptr) heap_.free(data_);
      data_ = nullptr;
      n_bytes_ = 0;
    }
    Heap& heap_;
    std::byte* data_ = nullptr;
    size_t n_bytes_ = 0;
  };

  std::vector<RecvRequest> recvs_;
  size_t n_recvs_ = 0;
  size_t landed_ = 0;
  std::array<Sends, 2> sends_;
  Block scratch_;
  Block wire_;
  Block landing_;
};

}  // namespace tern
