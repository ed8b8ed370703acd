#include "runtime/base/heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <vector>

#include "runtime/base/philox.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

std::unique_ptr<Heap> make_heap(size_t n_bytes) {
  auto heap = Heap::create(n_bytes);
  EXPECT_TRUE(heap.ok());
  return std::move(heap).value();
}

uintptr_t address(const void* p) {
  return reinterpret_cast<uintptr_t>(p);
}

int64_t resident_bytes(const Heap& heap) {
  struct stat s {};
  EXPECT_EQ(::fstat(heap.fd(), &s), 0);
  return static_cast<int64_t>(s.st_blocks) * 512;
}

TEST(Heap, BlocksNeverOverlapAndAllMemoryComesBack) {
  constexpr uint64_t kSeed = 5;
  const auto heap = make_heap(64 * kMiB);
  Philox random(kSeed);
  std::map<std::byte*, size_t> blocks;
  for (int i = 0; i < 20000; ++i) {
    if (random.next() % 5 < 3) {
      const size_t n = random.next() % (random.next() % 8 == 0 ? 3 * kMiB : 5000);
      const auto got = heap->allocate(n);
      if (!got.ok()) continue;
      auto* p = static_cast<std::byte*>(got.value());
      ASSERT_EQ(address(p) % 64, 0u) << "n " << n << " seed " << kSeed;
      ASSERT_TRUE(heap->contains(p, n));
      const auto next = blocks.lower_bound(p);
      ASSERT_TRUE(next == blocks.end() || p + n <= next->first) << "n " << n << " seed " << kSeed;
      ASSERT_TRUE(next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= p);
      blocks.emplace(p, std::max<size_t>(n, 1));
    } else if (!blocks.empty()) {
      auto victim = blocks.begin();
      std::advance(victim, static_cast<long>(random.next() % blocks.size()));
      heap->free(victim->first);
      blocks.erase(victim);
    }
  }
  for (const auto& [p, n] : blocks) heap->free(p);
  EXPECT_TRUE(heap->allocate(64 * kMiB).ok()) << "the free memory is in pieces";
}

TEST(Heap, LargeBlocksStartAtPagesAndHugePages) {
  const auto heap = make_heap(64 * kMiB);
  ASSERT_TRUE(heap->allocate(64).ok());
  EXPECT_EQ(address(heap->allocate(5000).value()) % 4096, 0u);
  EXPECT_EQ((address(heap->allocate(2 * kMiB).value()) - address(heap->base())) % (2 * kMiB), 0u);
}

TEST(Heap, ABlockThatFitsOnlyOffAHugePageIsStillGiven) {
  const auto heap = make_heap(3 * kMiB);
  ASSERT_TRUE(heap->allocate(64).ok());
  EXPECT_TRUE(heap->allocate(2 * kMiB + kMiB / 2).ok());
}

TEST(Heap, ZeroBytesAreABlockOfTheirOwn) {
  const auto heap = make_heap(kMiB);
  EXPECT_NE(heap->allocate(0).value(), heap->allocate(0).value());
}

TEST(Heap, RefusalSaysWhatWasAskedWhatIsFreeAndWhatToRaise) {
  const auto heap = make_heap(kMiB);
  ASSERT_TRUE(heap->allocate(kMiB / 2).ok());
  const auto refused = heap->allocate(kMiB);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kOutOfMemory);
  EXPECT_THAT(refused.error().message, HasSubstr("1048576 bytes"));
  EXPECT_THAT(refused.error().message, HasSubstr("524288 of its 1048576 bytes are free"));
  EXPECT_THAT(refused.error().message, HasSubstr("TERN_HEAP_BYTES"));
  EXPECT_FALSE(heap->allocate(SIZE_MAX - 10).ok());
}

TEST(Heap, ContainsOnlyRangesThatLieWhollyInside) {
  const auto heap = make_heap(kMiB);
  EXPECT_TRUE(heap->contains(heap->base(), kMiB));
  EXPECT_FALSE(heap->contains(heap->base(), kMiB + 1));
  EXPECT_FALSE(heap->contains(heap->base() + kMiB, 1));
  EXPECT_FALSE(heap->contains(heap->base() - 1, 1));
  EXPECT_FALSE(heap->contains(heap->base() + 1, SIZE_MAX));
}

TEST(Heap, AnotherMapOfTheFileSeesWhatIsWritten) {
  const auto heap = make_heap(kMiB);
  auto* p = static_cast<char*>(heap->allocate(100).value());
  std::strcpy(p, "tern");
  void* other = ::mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, heap->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_STREQ(static_cast<const char*>(other) + (address(p) - address(heap->base())), "tern");
  ::munmap(other, kMiB);
}

TEST(Heap, MemoryIsTakenWhenItIsUsedAndGivenBackWhenMuchOfItWasFreed) {
  const auto heap = make_heap(1024 * kMiB);
  constexpr size_t kBlock = 64 * kMiB;
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) {
    blocks.push_back(heap->allocate(kBlock).value());
    static_cast<char*>(blocks.back())[0] = 1;  // one page
  }
  const int64_t used = resident_bytes(*heap);
  EXPECT_GE(used, 5 * 4096);
  for (int i = 0; i < 4; ++i) heap->free(blocks[static_cast<size_t>(i)]);
  EXPECT_EQ(resident_bytes(*heap), used) << "256 MiB are kept";
  heap->free(blocks[4]);
  EXPECT_EQ(resident_bytes(*heap), 0);
}

TEST(Heap, FreeingWhatIsNotABlockIsABug) {
  const auto heap = make_heap(kMiB);
  auto* p = static_cast<std::byte*>(heap->allocate(128).value());
  EXPECT_THROW(heap->free(p + 64), CheckFailure);
  heap->free(nullptr);
}

}  // namespace
}  // namespace tern
