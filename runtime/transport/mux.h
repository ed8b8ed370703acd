// Several transports behind one: each peer is reached by the one that leads to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace tern {

/// When one part fails, all fail with its error, here and (through each part's abort) on the other ranks.
///
/// Sleeping: a rank that waits on one part only sleeps in that part. One that waits on several cannot sleep
/// in all at once (a futex here, a descriptor there): it sleeps in the first for an eighth of the time waited
/// so far, at most 1 ms, and looks at the others in between. A wait thus takes at most an eighth longer than
/// the event it waits for.
class Mux final : public Transport {
 public:
  /// part_of_rank: by world rank, an index into parts.
  Mux(std::vector<std::unique_ptr<Transport>> parts, std::vector<size_t> part_of_rank);

  std::string_view name() const override { return name_; }
  bool shares(const void* data, size_t n_bytes) const override;
  bool writes_on_arrival() const override;
  void send(SendRequest& request) override;
  void recv(RecvRequest& request) override;
  Poll poll(SendRequest& request) override { return poll_part(request); }
  Poll poll(RecvRequest& request) override { return poll_part(request); }
  void release(RecvRequest& request) override;
  uint64_t arm() override;
  void sleep(uint64_t token, Clock::duration at_most) override;
  const Error& failure() const override { return failure_; }
  void abort(const Error& error) override;

 private:
  struct Part {
    std::unique_ptr<Transport> transport;
    uint64_t token = 0;
    bool is_awaited = false;  ///< a request of it was pending since arm()
  };

  Part& part_of(int rank) { return parts_[part_of_rank_[static_cast<size_t>(rank)]]; }
  template <class Request>
  Poll poll_part(Request& request);

  std::vector<Part> parts_;
  std::vector<size_t> part_of_rank_;
  std::string name_;
  Clock::time_point idle_since_;
  bool is_idle_ = false;
  bool failed_ = false;
  Error failure_;
};

}  // namespace tern
