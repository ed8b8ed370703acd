#include "trainer/config/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/config/keys.h"

namespace tern::trainer {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr auto kTestKeys = std::to_array<Key>({
    {"data.path", KeyKind::kText, "null", "a path", "the data"},
    {"deepspeed.train_batch_size", KeyKind::kInteger, "8", "1..100", "batch"},
    {"deepspeed.zero.stage", KeyKind::kChoice, "0", "0|2", "stage"},
    {"deepspeed.zero.overlap", KeyKind::kFlag, "true", "", "overlap"},
    {"deepspeed.betas", KeyKind::kNumbers, "[0.9, 0.999]", "0..1", "betas"},
    {"deepspeed.lr", KeyKind::kNumber, "1e-3", "0..10", "rate"},
    {"run.kind", KeyKind::kChoice, "\"a\"", "a|b", "kind"},
});

std::string problem(const std::string& text) {
  const auto values = resolve(Json::parse(text), kTestKeys);
  return values.ok() ? "" : values.error().message;
}

TEST(Schema, AnUnknownKeyIsNamedInFullWithTheNearest) {
  EXPECT_THAT(problem(R"({"deepspeed": {"zero": {"stge": 2}}})"),
              HasSubstr("unknown key deepspeed.zero.stge; the nearest known key is deepspeed.zero.stage"));
}

TEST(Schema, AKeyThatIsLikeNoneIsToldWhatThereIs) {
  EXPECT_THAT(problem(R"({"comms": {}})"),
              testing::EndsWith("unknown key comms; there are data, deepspeed, run"));
  EXPECT_THAT(problem(R"({"run": {"colour": 1}})"), testing::EndsWith("there are run.kind"));
}

TEST(Schema, ARightNameInTheWrongPlaceFindsItsPlace) {
  EXPECT_THAT(problem(R"({"train_batch_size": 4})"),
              HasSubstr("nearest known key is deepspeed.train_batch_size"));
}

TEST(Schema, AMistypedSectionFindsTheSection) {
  const auto real_problem = [](const char* text) {
    const auto values = resolve(Json::parse(text), run_keys());
    return values.ok() ? "" : values.error().message;
  };
  EXPECT_THAT(real_problem(R"({"modle": {}})"),
              testing::EndsWith("unknown key modle; the nearest known key is model"));
  EXPECT_THAT(real_problem(R"({"rn": {"steps": 3}})"), testing::EndsWith("key is run"));
  EXPECT_THAT(real_problem(R"({"comunication": 1})"), testing::EndsWith("key is communication"));
  EXPECT_THAT(real_problem(R"({"deepspeed": {"zero_optimisation": {}}})"),
              testing::EndsWith("key is deepspeed.zero_optimization"));
  EXPECT_THAT(real_problem(R"({"model": {"hidden_sise": 3}})"),
              testing::EndsWith("key is model.hidden_size"));
  EXPECT_THAT(real_problem(R"({"steps": 3})"), testing::EndsWith("key is run.steps"));
  EXPECT_THAT(real_problem(R"({"run": {"lr": 3}})"),
              testing::EndsWith("key is deepspeed.optimizer.params.lr"));
}

TEST(Schema, WrongTypesSayWhatIsAllowed) {
  EXPECT_THAT(problem(R"({"deepspeed": {"train_batch_size": "eight"}})"),
              HasSubstr("deepspeed.train_batch_size is \"eight\"; allowed: a whole number in 1..100"));
  EXPECT_THAT(problem(R"({"deepspeed": {"train_batch_size": 1.5}})"), HasSubstr("a whole number"));
  EXPECT_THAT(problem(R"({"deepspeed": {"train_batch_size": 101}})"), HasSubstr("is 101"));
  EXPECT_THAT(problem(R"({"deepspeed": {"train_batch_size": -1}})"), HasSubstr("is -1"));
  EXPECT_THAT(problem(R"({"deepspeed": {"zero": {"overlap": 1}}})"), HasSubstr("true or false"));
  EXPECT_THAT(problem(R"({"deepspeed": {"zero": {"stage": 3}}})"), HasSubstr("0 or 2"));
  EXPECT_THAT(problem(R"({"deepspeed": {"zero": {"stage": "2"}}})"), HasSubstr("0 or 2"));
  EXPECT_THAT(problem(R"({"deepspeed": {"betas": [0.9]}})"), HasSubstr("a list of 2 numbers in 0..1"));
  EXPECT_THAT(problem(R"({"deepspeed": {"betas": [0.9, 2]}})"), HasSubstr("a list of 2 numbers in 0..1"));
  EXPECT_THAT(problem(R"({"deepspeed": {"lr": [1]}})"), HasSubstr("a number in 0..10"));
  EXPECT_THAT(problem(R"({"data": {"path": 1}})"), HasSubstr("a text"));
  EXPECT_THAT(problem(R"({"deepspeed": 3})"), HasSubstr("deepspeed is 3; allowed: an object"));
  EXPECT_THAT(problem(R"({"deepspeed": {"zero": [1]}})"), HasSubstr("deepspeed.zero is [1]"));
  EXPECT_THAT(problem("[]"), HasSubstr("must be an object"));
}

TEST(Schema, DefaultsNullsAndWholeFloatsResolve) {
  const auto values = resolve(
      Json::parse(R"({"deepspeed": {"train_batch_size": 5e1, "lr": null}, "data": null})"), kTestKeys);
  ASSERT_TRUE(values.ok()) << values.error().message;
  EXPECT_EQ(values->integer("deepspeed.train_batch_size"), 50);
  EXPECT_EQ(values->number("deepspeed.lr"), 1e-3);
  EXPECT_FALSE(values->given("deepspeed.lr"));
  EXPECT_FALSE(values->has("data.path"));
  EXPECT_EQ(values->nested()["deepspeed"]["zero"]["stage"], 0);
}

TEST(Schema, AssignmentsMakeObjectsAndReadJsonOrText) {
  Json input = Json::object();
  ASSERT_TRUE(set_value(input, "deepspeed.zero.stage=2").ok());
  ASSERT_TRUE(set_value(input, "data.path=a/b=c.txt").ok());
  EXPECT_EQ(input["deepspeed"]["zero"]["stage"], 2);
  EXPECT_EQ(input["data"]["path"], "a/b=c.txt");
}

TEST(Schema, AssignmentsThatCannotBeAreErrors) {
  Json input = Json::parse(R"({"a": 1})");
  EXPECT_FALSE(set_value(input, "novalue").ok());
  EXPECT_FALSE(set_value(input, "=1").ok());
  EXPECT_FALSE(set_value(input, "a..b=1").ok());
  EXPECT_FALSE(set_value(input, "a.b=1").ok());
}

TEST(Schema, EveryDefaultOfTheRealTableIsAllowedByItsRow) {
  for (const Key& key : run_keys()) {
    const Json initial = Json::parse(key.initial);
    if (initial.is_null()) continue;
    Json input = Json::object();
    ASSERT_TRUE(set_value(input, fmt::format("{}={}", key.path, key.initial)).ok()) << key.path;
    const auto values = resolve(input, run_keys());
    EXPECT_TRUE(values.ok()) << (values.ok() ? "" : values.error().message);
  }
}

TEST(Schema, TheRealTableHasNoKeyTwiceAndNoKeyThatIsASection) {
  for (const Key& key : run_keys()) {
    int n_same = 0;
    for (const Key& other : run_keys()) {
      n_same += other.path == key.path ? 1 : 0;
      EXPECT_FALSE(other.path.starts_with(std::string(key.path) + ".")) << key.path;
    }
    EXPECT_EQ(n_same, 1) << key.path;
  }
}

TEST(Schema, TheKeyListHasARowPerKey) {
  const std::string table = key_table(run_keys());
  EXPECT_EQ(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')), run_keys().size() + 2);
}

}  // namespace
}  // namespace tern::trainer
