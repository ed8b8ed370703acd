// One aligned allocation for all activations of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"

namespace tern::trainer {

/// Zeroed memory, aligned to 2 MiB when it is large (huge pages are asked for) and to 64 bytes otherwise.
/// Move-only.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  /// Errors: kOutOfMemory.
  static Result<Buffer> create(int64_t n);

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return n_; }
  std::span<T> span() { return {data_.get(), static_cast<size_t>(n_)}; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<T[], Free> data_;
  int64_t n_ = 0;
};

extern template class Buffer<float>;
extern template class Buffer<double>;

}  // namespace tern::trainer
