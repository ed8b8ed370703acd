// The interpreter runs kernels as a GPU would, and stops at each thing that a GPU leaves undefined.
#include "kernels/simt/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/cuda/device.cuh"

namespace tern::cuda {
namespace {

using simt::Memory;
using simt::Shape;
using testing::HasSubstr;

/// In order, reversed, and shuffled ones.
constexpr uint64_t kSeeds[] = {0, 1, 2, 3, 4, 5, 6, 7};

/// The first error among several schedules; OK when all of them run to the end.
Status run_on_all_schedules(const Shape& shape, Memory& memory, const std::function<void()>& body) {
  for (const uint64_t seed : kSeeds) TERN_TRY(simt::run({shape, &memory, seed}, body));
  return {};
}

void expect_error(const Status& status, std::initializer_list<const char*> parts) {
  ASSERT_FALSE(status.ok());
  for (const char* part : parts) EXPECT_THAT(status.error().message, HasSubstr(part));
}

TEST(SimtLaunch, RunsEachThreadOfEachBlockOnce) {
  std::vector<uint32_t> out(3 * 40);
  Memory memory;
  memory.add("out", std::span(out));
  for (const uint64_t seed : kSeeds) {
    std::fill(out.begin(), out.end(), 0U);
    const Status status = simt::run({{.grid = 3, .block = 40}, &memory, seed}, [&] {
      const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
      Global(out.data()).atomic_add(i, static_cast<uint32_t>(i + 1000 * gridDim.x));
    });
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i + 3000) << "seed " << seed;
  }
}

TEST(SimtLaunch, SchedulesDifferInTheOrderOfBlocksAndThreads) {
  std::set<std::vector<uint32_t>> orders;
  for (const uint64_t seed : kSeeds) {
    std::vector<uint32_t> order;
    Memory memory;
    const Status status = simt::run({{.grid = 2, .block = 8}, &memory, seed}, [&] {
      __syncthreads();
      order.push_back(blockIdx.x * 8 + threadIdx.x);
    });
    ASSERT_TRUE(status.ok()) << status.error().message;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), std::size(kSeeds));
}

TEST(SimtWarp, ShufflesVotesAndReductionsGiveWhatCudaSays) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 64}, memory, [&] {
    const uint32_t lane = threadIdx.x % 32;
    EXPECT_EQ(__shfl_xor_sync(kAllLanes, threadIdx.x + 0U, 5), threadIdx.x ^ 5U);
    EXPECT_EQ(__shfl_down_sync(kAllLanes, lane, 3), lane < 29 ? lane + 3 : lane);
    EXPECT_EQ(__shfl_up_sync(kAllLanes, lane, 3), lane < 3 ? lane : lane - 3);
    EXPECT_EQ(__shfl_sync(kAllLanes, 0.5 * lane, 33), 0.5);
    EXPECT_EQ(__ballot_sync(kAllLanes, lane % 3 == 0 ? 1 : 0), 0x49249249U);
    EXPECT_EQ(__any_sync(kAllLanes, lane == 31 ? 1 : 0), 1);
    EXPECT_EQ(__all_sync(kAllLanes, lane != 31 ? 1 : 0), 0);
    EXPECT_EQ(__all_sync(kAllLanes, 7), 1);
    EXPECT_EQ(__reduce_add_sync(kAllLanes, 0xF0000000U + lane), 496U);
    EXPECT_EQ(__reduce_max_sync(kAllLanes, 100 - lane), 100U);
    EXPECT_EQ(__reduce_or_sync(kAllLanes, 1U << lane), kAllLanes);
  });
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(SimtWarp, HalvesMayTalkAmongThemselves) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 32}, memory, [&] {
    const uint32_t half = threadIdx.x < 16 ? 0xFFFF : 0xFFFF0000;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(__ballot_sync(half, 1), half);
      EXPECT_EQ(__reduce_add_sync(half, 1), 16U);
    }
  });
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(SimtShared, BarriersHandValuesOver) {
  std::vector<float> out(256);
  Memory memory;
  memory.add("out", std::span(out));
  const Status status = run_on_all_schedules({.grid = 2, .block = 128, .shared_bytes = 512}, memory, [&] {
    TERN_SHARED Shared<float, 128> mine;
    const auto theirs = dynamic_shared<float>();
    mine.store(threadIdx.x, static_cast<float>(threadIdx.x));
    __syncthreads();
    theirs.store(threadIdx.x, mine.load(127 - threadIdx.x));
    __syncthreads();
    Global(out.data()).store(blockIdx.x * 128 + threadIdx.x, theirs.load(threadIdx.x ^ 1));
  });
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], static_cast<float>(127 - (i % 128 ^ 1)));
}

TEST(SimtShared, AtomicsCountEveryThread) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 96}, memory, [&] {
    TERN_SHARED Shared<uint32_t, 2> counts;
    if (threadIdx.x < 2) counts.store(threadIdx.x, 0);
    __syncthreads();
    counts.atomic_add(0, 2);
    counts.atomic_max(1, threadIdx.x);
    __syncthreads();
    EXPECT_EQ(counts.load(0), 192U);
    EXPECT_EQ(counts.load(1), 95U);
  });
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(SimtBarrier, FailsWhenAThreadHasLeft) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 64}, memory, [&] {
    if (threadIdx.x == 5) return;
    __syncthreads();
  });
  expect_error(status, {"divergence", "barrier at launch_test.cpp", "thread 5 has exited"});
}

TEST(SimtBarrier, FailsWhenThreadsWaitAtDifferentOnes) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 64}, memory, [&] {
    if (threadIdx.x < 32) {
      __syncthreads();
      return;
    }
    __syncthreads();
  });
  expect_error(status, {"waits at a barrier", "thread 0 waits at the barrier at launch_test.cpp"});
}

TEST(SimtBarrier, FailsWhenAThreadOfTheWarpWaitsInAShuffle) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 32}, memory, [&] {
    if (threadIdx.x == 7)
      __syncthreads();
    else
      __shfl_xor_sync(kAllLanes, 1, 1);
  });
  expect_error(status,
               {"divergence", "waits in __shfl_xor_sync with mask 0xffffffff", "thread 7 waits at the"});
}

TEST(SimtWarp, FailsWhenALaneOfTheMaskHasExited) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 32}, memory, [&] {
    if (threadIdx.x >= 24) return;
    __shfl_down_sync(kAllLanes, 1, 1);
  });
  expect_error(status, {"waits in __shfl_down_sync", "thread 24 has exited"});
}

TEST(SimtWarp, FailsWhenALaneLeavesItselfOutOfTheMask) {
  Memory memory;
  const Status status =
      run_on_all_schedules({.grid = 1, .block = 32}, memory, [&] { __ballot_sync(0xFFFF, 1); });
  expect_error(status, {"mask 0xffff, which leaves out its own lane"});
}

TEST(SimtWarp, FailsWhenTheMaskNamesLanesThatTheBlockDoesNotHave) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 40}, memory, [&] { __syncwarp(); });
  expect_error(status, {"mask 0xffffffff, but its warp has 8 lanes"});
}

TEST(SimtWarp, FailsWhenAShuffleReadsALaneOutsideOfTheMask) {
  Memory memory;
  const Status status = run_on_all_schedules({.grid = 1, .block = 32}, memory, [&] {
    if (threadIdx.x < 4) __shfl_sync(0xF, 1, 9);
  });
  expect_error(status, {"for the value of lane 9, which is not in mask 0xf"});
}

TEST(SimtWarp, FailsWhenLanesNameDifferentMasks) {
  Memory memory;
  const Status status = run_on_all_schedules(
      {.grid = 1, .block = 32}, memory, [&] { __ballot_sync(threadIdx.x == 3 ? 0xFFFFU : kAllLanes, 1); });
  expect_error(status, {"divergence", "mask 0xffffffff", "mask 0xffff at"});
}

/// Runs `body` on one warp with `buffer` of 64 floats as its only memory.
Status run_on_buffer(const std::function<void(Global<float>)>& body) {
  alignas(16) float buffer[64] = {};
  Memory memory;
  memory.add("buffer", std::span<float>(buffer));
  return run_on_all_schedules({.grid = 1, .block = 32}, memory, [&] { body(Global(buffer)); });
}

TEST(SimtMemory, FailsOnAnAccessOutsideOfEveryBuffer) {
  expect_error(run_on_buffer([](auto buffer) { buffer.store(threadIdx.x * 2 + 2, 1.0F); }),
               {"writes 4 bytes that belong to none of the kernel's buffers"});
  expect_error(run_on_buffer([](auto buffer) { buffer.load(threadIdx.x - size_t{1}); }),
               {"reads 4 bytes that belong to none"});
}

TEST(SimtMemory, FailsOnAVectorThatReachesBeyondTheBuffer) {
  alignas(16) float buffer[64] = {};
  Memory memory;
  memory.add("buffer", std::span<float>(buffer).first(62));
  expect_error(run_on_all_schedules({.grid = 1, .block = 16}, memory,
                                    [&] { Global(buffer).load_vector<4>(threadIdx.x * 4); }),
               {"thread 15", "reads 16 bytes at byte 240 of buffer, which has 248"});
}

TEST(SimtMemory, FailsOnAMisalignedVector) {
  expect_error(run_on_buffer([](auto buffer) { buffer.template load_vector<4>(threadIdx.x + 1); }),
               {"touches 16 bytes at a misaligned address"});
}

TEST(SimtMemory, FailsOnAWriteToAnInput) {
  std::vector<float> in(32);
  Memory memory;
  memory.add_input("in", std::span<const float>(in));
  expect_error(run_on_all_schedules({.grid = 1, .block = 32}, memory,
                                    [&] { Global(in.data()).store(threadIdx.x, 0.0F); }),
               {"writes in, which is an input"});
}

TEST(SimtShared, FailsOnAnIndexBeyondTheArray) {
  Memory memory;
  expect_error(run_on_all_schedules({.grid = 1, .block = 32, .shared_bytes = 64}, memory,
                                    [&] { dynamic_shared<float>().store(threadIdx.x, 0.0F); }),
               {"touches element", "of shared memory, which has 16"});
}

TEST(SimtShared, FailsOnAReadOfWhatNobodyWrote) {
  Memory memory;
  expect_error(run_on_all_schedules({.grid = 2, .block = 32}, memory,
                                    [&] {
                                      TERN_SHARED Shared<int, 32> values;
                                      if (blockIdx.x == 0) values.store(threadIdx.x, 1);
                                      values.load(threadIdx.x);
                                    }),
               {"block 1", "reads byte", "of shared memory, which no thread of the block has written"});
}

/// A kernel in which thread 0 writes what thread `reader` reads, with `between` between the two.
Status hand_over(uint32_t reader, const std::function<void()>& between) {
  Memory memory;
  return run_on_all_schedules({.grid = 1, .block = 64}, memory, [&] {
    TERN_SHARED Shared<int, 1> value;
    if (threadIdx.x == 0) value.store(0, 1);
    between();
    if (threadIdx.x == reader) value.load(0);
  });
}

TEST(SimtRaces, AWriteAndAReadNeedABarrierBetween) {
  expect_error(hand_over(40, [] {}), {"shared memory"});
  expect_error(hand_over(40, [] { __syncwarp(); }), {"shared memory"});
  EXPECT_TRUE(hand_over(40, [] { __syncthreads(); }).ok());
}

TEST(SimtRaces, InsideAWarpSyncwarpOrdersMemoryAndAShuffleDoesNot) {
  EXPECT_TRUE(hand_over(9, [] { __syncwarp(); }).ok());
  expect_error(hand_over(9, [] { __shfl_xor_sync(kAllLanes, 1, 1); }),
               {"a race with thread 0 of block 0, which wrote it"});
}

TEST(SimtRaces, AWriteAfterAReadNeedsABarrierToo) {
  Memory memory;
  const auto body = [](bool sync) {
    TERN_SHARED Shared<int, 64> values;
    values.store(threadIdx.x, 1);
    __syncthreads();
    const int theirs = values.load(63 - threadIdx.x);
    if (sync) __syncthreads();
    values.store(threadIdx.x, theirs);
  };
  expect_error(run_on_all_schedules({.grid = 1, .block = 64}, memory, [&] { body(false); }),
               {"a race with thread"});
  EXPECT_TRUE(run_on_all_schedules({.grid = 1, .block = 64}, memory, [&] { body(true); }).ok());
}

TEST(SimtRaces, TwoThreadsMayNotWriteOneByteOfGlobalMemory) {
  expect_error(run_on_buffer([](auto buffer) { buffer.store(threadIdx.x / 2, 1.0F); }),
               {"writes byte", "of buffer, a race with thread"});
  EXPECT_TRUE(run_on_buffer([](auto buffer) { buffer.atomic_add(threadIdx.x / 2, 1.0F); }).ok());
}

TEST(SimtRaces, BlocksMayNotHandOverThroughPlainMemory) {
  std::vector<int> cell(1);
  Memory memory;
  memory.add("cell", std::span(cell));
  expect_error(run_on_all_schedules({.grid = 2, .block = 1}, memory,
                                    [&] {
                                      if (blockIdx.x == 0)
                                        Global(cell.data()).store(0, 1);
                                      else
                                        Global(cell.data()).load(0);
                                    }),
               {"of cell, a race with thread 0 of block"});
}

TEST(SimtLaunch, GoesOnWorkingAfterAFailure) {
  for (int i = 0; i < 3; ++i) {
    expect_error(run_on_buffer([](auto buffer) { buffer.store(99 + threadIdx.x, 1.0F); }), {"none of the"});
    EXPECT_TRUE(run_on_buffer([](auto buffer) { buffer.store(threadIdx.x, 1.0F); }).ok());
  }
}

}  // namespace
}  // namespace tern::cuda
