// Once a call's shape is known, running it again asks the system for no memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "tests/ranks.h"

namespace {
thread_local size_t n_allocations = 0;

void* counted(size_t n_bytes, size_t alignment) {
  ++n_allocations;
  void* memory = std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// All other forms of new and delete come down to these, whose memory is malloc's. The address sanitizer has a
// nothrow form of its own.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t n_bytes) {
  return counted(std::max<size_t>(n_bytes, 1), alignof(std::max_align_t));
}
void* operator new(size_t n_bytes, std::align_val_t alignment) {
  return counted(std::max<size_t>(n_bytes, 1), static_cast<size_t>(alignment));
}
void* operator new(size_t n_bytes, const std::nothrow_t& /*tag*/) noexcept try {
  return operator new(n_bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void operator delete(void* memory) noexcept {
  std::free(memory);  // NOLINT: what counted() gave
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);  // NOLINT
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);  // NOLINT
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);  // NOLINT
}

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

TEST(SteadyState, CallsOfKnownShapesAllocateNothing) {
  on_ranks(3, quick_config(), [](Communicator& comm) {
    const auto p = static_cast<size_t>(comm.size());
    std::vector<float> whole(p * 30000, 1), part(30000, 1);
    const std::vector<size_t> counts = {10000, 30000, 20000};
    const size_t own = counts[static_cast<size_t>(comm.rank())];
    const auto all_calls = [&] {
      for (const size_t n : {size_t{1}, size_t{1000}, size_t{30000}}) {
        const std::span<float> share(part.data(), n), all(whole.data(), n * p);
        ASSERT_TRUE(comm.all_reduce(std::span<const float>(share), share, Op::kMax).ok());
        ASSERT_TRUE(comm.reduce_scatter(std::span<const float>(all), share, Op::kMax).ok());
        ASSERT_TRUE(comm.all_gather(std::span<const float>(share), all).ok());
        ASSERT_TRUE(comm.broadcast(share, 1).ok());
        ASSERT_TRUE(
            comm.reduce(std::span<const float>(share), View(whole.data(), n, Dtype::kFloat32), Op::kMax, 0)
                .ok());
        ASSERT_TRUE(comm.all_to_all(std::span<const float>(all), all).ok());
        ASSERT_TRUE(comm.barrier().ok());
      }
      const std::span<float> mine(part.data(), own);
      const View everything(whole.data(), 60000, Dtype::kFloat32);
      ASSERT_TRUE(comm.all_gather_v(std::span<const float>(mine), everything, counts).ok());
    };
    all_calls();
    all_calls();
    const size_t before = n_allocations;
    EXPECT_GT(before, 0U) << "the first calls make plans";
    for (int turn = 0; turn < 3; ++turn) all_calls();
    EXPECT_EQ(n_allocations, before) << "rank " << comm.rank();
  });
}

}  // namespace
}  // namespace tern
