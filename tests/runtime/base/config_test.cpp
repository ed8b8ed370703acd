#include "runtime/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runtime/base/log.h"

namespace tern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Config> read(const std::vector<Config::Variable>& variables,
                    std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  return Config::from_variables(variables, warnings != nullptr ? *warnings : ignored);
}

TEST(Config, EverySettingStartsAtItsDefaultAndItsTextReadsBack) {
  for (const Setting& row : kSettings) {
    Config config;
    EXPECT_EQ(row.text_in(config), row.initial) << row.variable;
    EXPECT_TRUE(config.set(row.variable, row.text_in(config)).ok()) << row.variable;
    EXPECT_EQ(config, Config()) << row.variable;
  }
}

TEST(Config, EverySettingIsNamedAfterItsFieldAndDocumented) {
  for (const Setting& row : kSettings) {
    std::string expected = "TERN_";
    for (const char c : row.field) expected += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(row.variable, expected);
    EXPECT_FALSE(row.doc.empty() || row.allowed.empty()) << row.variable;
  }
}

TEST(Config, TheReadmeListsEverySettingAsTheTableSays) {
  std::ostringstream readme;
  readme << std::ifstream(TERN_SOURCE_DIR "/README.md").rdbuf();
  for (const Setting& row : kSettings) {
    std::string line = fmt::format("| `{}` | {} | ", row.variable, row.initial);
    for (const char c : row.allowed) line += c == '|' ? "\\|" : std::string(1, c);
    line += fmt::format(" | {} |\n", row.doc);
    EXPECT_THAT(readme.str(), HasSubstr(line));
  }
}

TEST(Config, ReadsEveryKind) {
  const Result<Config> config = read({{"TERN_HOST_ID", "left"},
                                      {"TERN_TRANSPORT", "ucx"},
                                      {"TERN_TIMEOUT", "2.5"},
                                      {"TERN_HEAP_BYTES", "64M"},
                                      {"TERN_THREADS", "3"},
                                      {"HOME", "/root"}});
  ASSERT_TRUE(config.ok()) << config.error().to_string();
  EXPECT_EQ(config->host_id, "left");
  EXPECT_EQ(config->transport, "ucx");
  EXPECT_EQ(config->timeout, Seconds(2.5));
  EXPECT_EQ(config->heap_bytes, uint64_t{64} << 20);
  EXPECT_EQ(config->threads, 3);
}

TEST(Config, AnUnknownVariableIsAWarningThatNamesTheNearest) {
  std::vector<std::string> warnings;
  ASSERT_TRUE(read({{"TERN_TIMEOUTS", "1"}, {"TERN_CODEC", "q8"}}, &warnings).ok());
  EXPECT_THAT(warnings, ElementsAre(::testing::AllOf(HasSubstr("TERN_TIMEOUTS"),
                                                     HasSubstr("nearest is TERN_TIMEOUT"))));
}

TEST(Config, ABadValueIsAnErrorThatNamesVariableValueAndWhatIsAllowed) {
  const std::vector<Config::Variable> bad = {
      {"TERN_TRANSPORT", "pigeon"}, {"TERN_TRANSPORT", "auto|shm"}, {"TERN_TRANSPORT", " "},
      {"TERN_TIMEOUT", "0"},     {"TERN_TIMEOUT", "soon"},       {"TERN_TIMEOUT", "nan"},
      {"TERN_TIMEOUT", "3s"},    {"TERN_THREADS", "1.5"},        {"TERN_THREADS", "-1"},
      {"TERN_THREADS", "99999"}, {"TERN_HEAP_BYTES", "inf"},     {"TERN_HEAP_BYTES", "1k"},
      {"TERN_LOG", "verbose"}};
  for (const auto& [name, value] : bad) {
    const Result<Config> config = read({{name, value}});
    ASSERT_FALSE(config.ok()) << name << "=" << value;
    EXPECT_EQ(config.error().code, Code::kInvalidArgument);
    EXPECT_THAT(config.error().message, HasSubstr(fmt::format("{}=\"{}\"", name, value)));
    EXPECT_THAT(config.error().message, HasSubstr("allowed: "));
  }
}

TEST(Config, AnEmptyValueIsTheDefaultOfEverySetting) {
  for (const Setting& row : kSettings) {
    const Result<Config> config = read({{std::string(row.variable), ""}});
    ASSERT_TRUE(config.ok()) << config.error().to_string();
    EXPECT_EQ(*config, Config()) << row.variable;
  }
  Config config;
  ASSERT_TRUE(config.set("timeout", "7").ok());
  ASSERT_TRUE(config.set("timeout", "").ok());
  EXPECT_EQ(config, Config());
}

TEST(Config, SetTakesFieldNamesAndLeavesTheValueOnError) {
  Config config;
  EXPECT_TRUE(config.set("timeout", "7").ok());
  EXPECT_FALSE(config.set("timeout", "-7").ok());
  EXPECT_EQ(config.timeout, Seconds(7));
  const Status unknown = config.set("time_out", "7");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Code::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("nearest is timeout"));
}

TEST(Config, ASecretIsNeverPrinted) {
  Config config;
  ASSERT_TRUE(config.set("TERN_SECRET", "hunter2").ok());
  EXPECT_EQ(config.secret, "hunter2");
  for (const Setting& row : kSettings) EXPECT_THAT(row.text_in(config), ::testing::Not(HasSubstr("hunter2")));
}

TEST(Config, FromEnvironmentReadsTheProcessAndLogsUnknownNames) {
  std::vector<std::string> lines;
  const LogSink former = set_log_sink([&](const LogRecord& r) { lines.emplace_back(r.message); });
  ASSERT_EQ(setenv("TERN_SEGMENT_BYTES", "256k", 1), 0);
  ASSERT_EQ(setenv("TERN_SEGMENT_BYTE", "1", 1), 0);
  const Result<Config> config = Config::from_environment();
  unsetenv("TERN_SEGMENT_BYTES");
  unsetenv("TERN_SEGMENT_BYTE");
  set_log_sink(former);
  ASSERT_TRUE(config.ok()) << config.error().to_string();
  EXPECT_EQ(config->segment_bytes, uint64_t{256} << 10);
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("nearest is TERN_SEGMENT_BYTES")));
}

TEST(Config, EnvironmentTellsUnsetFromEmpty) {
  ASSERT_EQ(setenv("TERNTEST_EMPTY", "", 1), 0);
  EXPECT_EQ(environment("TERNTEST_EMPTY"), "");
  unsetenv("TERNTEST_EMPTY");
  EXPECT_EQ(environment("TERNTEST_EMPTY"), std::nullopt);
}

}  // namespace
}  // namespace tern
