#include "runtime/base/size.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Size, ReadsWhatPeopleWrite) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"64k", 64 << 10},
      {"64K", 64 << 10},
      {"4MiB", 4 << 20},
      {"4MB", 4 << 20},
      {"512B", 512},
      {"1G", 1 << 30},
      {"2T", uint64_t{2} << 40},
      {"inf", kInfiniteSize},
      {"18446744073709551614", kInfiniteSize - 1},
  };
  for (const auto& [text, expected] : cases) {
    const Result<uint64_t> size = parse_size(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(*size, expected) << text;
  }
}

TEST(Size, RefusesWhatIsNotASize) {
  for (const char* text : {"", "k", "-1", "+1", "1.5M", "1 k", "1kk", "1P", "1KiBs", "0x10", " 1", "infinity",
                           "18446744073709551615", "18446744073709551616", "16777216T"}) {
    const Result<uint64_t> size = parse_size(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_NE(size.error().message.find(text), std::string::npos) << text;
  }
}

TEST(Size, PrintedSizesReadBack) {
  for (const uint64_t n :
       {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{1024}, uint64_t{1536}, uint64_t{65536},
        uint64_t{3} << 20, uint64_t{5} << 40, uint64_t{1} << 60, kInfiniteSize}) {
    EXPECT_EQ(*parse_size(format_size(n)), n) << format_size(n);
  }
  EXPECT_EQ(format_size(65536), "64k");
  EXPECT_EQ(format_size(1536), "1536");
}

}  // namespace
}  // namespace tern
