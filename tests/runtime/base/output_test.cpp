#include "runtime/base/output.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(FlushOutput, SaysThatAFullDeviceLostTheOutput) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::fputs("lost", full);
  const Status status = flush_output(full);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  std::fclose(full);
}

TEST(GuardedMain, TurnsAnExceptionIntoAFailedExit) {
  EXPECT_EQ(guarded_main("program", []() -> int { throw std::runtime_error("broken"); }), 1);
  EXPECT_EQ(guarded_main("program", [] { return 7; }), 7);
  EXPECT_EQ(guarded_main("program", [] { return 0; }), 0);
}

}  // namespace
}  // namespace tern
