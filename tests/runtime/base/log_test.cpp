#include "runtime/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tern {
namespace {

using ::testing::ElementsAre;

// Collects lines while it lives, then restores sink and level.
class Lines {
 public:
  explicit Lines(LogLevel level) : former_level_(log_level()) {
    set_log_level(level);
    former_sink_ =
        set_log_sink([this](const LogRecord& record) { lines.push_back(format_log_line(record)); });
  }
  ~Lines() {
    set_log_sink(former_sink_);
    set_log_level(former_level_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  std::vector<std::string> lines;

 private:
  LogLevel former_level_;
  LogSink former_sink_;
};

TEST(Log, ALineShowsRankLevelComponentAndMessage) {
  Lines log(LogLevel::kInfo);
  log_info("transport", "{} peers", 3);
  set_thread_log_rank(7);
  log_warn("plan", "slow");
  set_thread_log_rank(-1);
  EXPECT_THAT(log.lines, ElementsAre("tern - info transport: 3 peers", "tern 7 warn plan: slow"));
}

TEST(Log, AMessageWithLineBreaksStaysOneLine) {
  Lines log(LogLevel::kInfo);
  log_error("exec", "a\nb");
  EXPECT_THAT(log.lines, ElementsAre("tern - error exec: a b"));
}

TEST(Log, EveryLevelPassesExactlyTheMessagesUpToIt) {
  for (size_t level = 0; level < kLogLevelNames.size(); ++level) {
    Lines log(static_cast<LogLevel>(level));
    log_error("t", "x");
    log_warn("t", "x");
    log_info("t", "x");
    log_debug("t", "x");
    log_trace("t", "x");
    EXPECT_EQ(log.lines.size(), level + 1) << kLogLevelNames[level];
  }
}

TEST(Log, AThreadThatSetNoRankShowsTheProcessRank) {
  Lines log(LogLevel::kInfo);
  set_process_log_rank(2);
  set_thread_log_rank(5);
  std::thread([] { log_info("t", "other"); }).join();
  log_info("t", "this");
  set_process_log_rank(-1);
  set_thread_log_rank(-1);
  EXPECT_THAT(log.lines, ElementsAre("tern 2 info t: other", "tern 5 info t: this"));
}

TEST(Log, CallsOfTheSinkNeverOverlap) {
  Lines log(LogLevel::kInfo);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) log_info("t", "{}", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.lines.size(), 800U);
}

TEST(Log, LevelsReadBackAndOthersAreRefused) {
  for (const std::string_view level : kLogLevelNames) EXPECT_EQ(name(*parse_log_level(level)), level);
  const Result<LogLevel> wrong = parse_log_level("loud");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "unknown log level \"loud\"; allowed: error, warn, info, debug, trace");
}

}  // namespace
}  // namespace tern
