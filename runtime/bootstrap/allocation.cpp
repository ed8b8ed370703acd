#include <utility>

#include "runtime/bootstrap/world.h"

namespace tern {

Allocation::Allocation(std::shared_ptr<Heap> heap, void* data, size_t n_bytes)
    : heap_(std::move(heap)), data_(data), n_bytes_(n_bytes) {}

Allocation::~Allocation() {
  if (data_ != nullptr) heap_->free(data_);
}

Allocation::Allocation(Allocation&& other) noexcept
    : heap_(std::move(other.heap_)),
      data_(std::exchange(other.data_, nullptr)),
      n_bytes_(std::exchange(other.n_bytes_, 0)) {}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) heap_->free(data_);
  heap_ = std::move(other.heap_);
  data_ = std::exchange(other.data_, nullptr);
  n_bytes_ = std::exchange(other.n_bytes_, 0);
  return *this;
}

Result<Allocation> allocate(const World& world, size_t n_bytes) {
  if (n_bytes == 0) return Allocation();
  TERN_ASSIGN(void* data, world.heap->allocate(n_bytes));
  return Allocation(world.heap, data, n_bytes);
}

}  // namespace tern
