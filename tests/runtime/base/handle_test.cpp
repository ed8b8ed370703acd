#include "runtime/base/handle.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tern {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> closed;  // NOLINT: the traits of a handle are static

struct RecordingTraits {
  using type = int;
  static constexpr type null() { return 0; }
  static void close(type raw) noexcept { closed.push_back(raw); }
};
using Recorded = Handle<RecordingTraits>;

class HandleTest : public ::testing::Test {
 protected:
  void SetUp() override { closed.clear(); }
};

TEST_F(HandleTest, ClosesOnceAtTheEndOfItsLife) {
  {
    const Recorded handle(4);
    EXPECT_TRUE(handle.valid());
    EXPECT_THAT(closed, IsEmpty());
  }
  EXPECT_THAT(closed, ElementsAre(4));
}

TEST_F(HandleTest, AnEmptyOneClosesNothing) {
  { const Recorded handle; }
  EXPECT_THAT(closed, IsEmpty());
}

TEST_F(HandleTest, MovingPassesOwnershipOn) {
  {
    Recorded first(1);
    Recorded second(std::move(first));
    EXPECT_FALSE(first.valid());  // NOLINT: a moved-from handle is empty by contract
    Recorded third(3);
    third = std::move(second);
    EXPECT_THAT(closed, ElementsAre(3));
  }
  EXPECT_THAT(closed, ElementsAre(3, 1));
}

TEST_F(HandleTest, ReleaseGivesUpWithoutClosing) {
  Recorded handle(9);
  EXPECT_EQ(handle.release(), 9);
  EXPECT_FALSE(handle);
  handle.reset(8);
  handle.reset();
  EXPECT_THAT(closed, ElementsAre(8));
}

TEST_F(HandleTest, AFileDescriptorIsClosed) {
  int raw = -1;
  {
    const Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = fd.get();
    ASSERT_GE(::fcntl(raw, F_GETFD), 0);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

TEST_F(HandleTest, AMappingIsUnmapped) {
  constexpr size_t kBytes = 4096;
  void* address = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  {
    const Mapping mapping(MappedRange{static_cast<std::byte*>(address), kBytes});
    mapping.get().bytes()[5] = std::byte{1};
  }
  EXPECT_EQ(::msync(address, kBytes, MS_ASYNC), -1);
}

}  // namespace
}  // namespace tern
