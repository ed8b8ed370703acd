#include "runtime/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tern {
namespace {

using testing::HasSubstr;

TEST(JsonText, AcceptsComments) {
  const auto value = parse_json("{// why\n\"a\": 1 /* so */}", "x.json");
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ((*value)["a"], 1);
}

TEST(JsonText, ADuplicateKeyIsAnErrorNamingItsPath) {
  const auto value = parse_json(
      R"({"deepspeed": {"optimizer": {"type": "Adam", "params": {}, "type": "AdamW"}}})", "x.json");
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(value.error().message, HasSubstr("deepspeed.optimizer.type twice"));
}

TEST(JsonText, EqualKeysOfDifferentObjectsAreNoDuplicates) {
  EXPECT_TRUE(parse_json(R"({"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}, {"x": 1}]})", "x.json").ok());
}

TEST(JsonText, ASyntaxErrorNamesFileAndPlace) {
  const auto value = parse_json("{\n\"a\": }", "x.json");
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(value.error().message, HasSubstr("x.json is not valid JSON"));
  EXPECT_THAT(value.error().message, HasSubstr("line 2"));
}

TEST(JsonText, DeepNestingIsRefused) {
  const auto value = parse_json(std::string(100000, '[') + std::string(100000, ']'), "x.json");
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(value.error().message, HasSubstr("deep"));
}

TEST(JsonText, AMissingFileAndADirectoryAreNamed) {
  EXPECT_EQ(read_json_file("/nowhere/run.json").error().code, Code::kNotFound);
  EXPECT_THAT(read_json_file("/tmp").error().message, HasSubstr("/tmp is not a file"));
}

}  // namespace
}  // namespace tern
