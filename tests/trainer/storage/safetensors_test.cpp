#include "trainer/storage/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/base/philox.h"

namespace tern::trainer {
namespace {

using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  std::string path(const std::string& name = "file") const {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return testing::TempDir() + "safetensors_" + test->name() + "_" + name;
  }
  /// Opens a file of this header and so many bytes of data; returns the error's sentence, empty when it
  /// opened.
  std::string problem(const std::string& header, size_t n_data, std::optional<uint64_t> length = {}) const {
    const uint64_t claimed = length.value_or(header.size());
    std::ofstream file(path(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&claimed), sizeof(claimed));
    file << header << std::string(n_data, 'x');
    file.close();
    const auto opened = SafetensorsFile::open(path());
    return opened.ok() ? "" : opened.error().message;
  }
};

TEST_F(Safetensors, WhatIsWrittenIsReadBackToTheBit) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), -3.5F);
  const std::vector<int64_t> numbers = {1, -2, 3};
  const std::vector<TensorView> tensors = {
      float_tensor("b", {10, 100}, values),
      {"a", "I64", {3}, std::as_bytes(std::span(numbers))},
      float_tensor("empty", {0, 7}, {}),
      float_tensor("scalar", {}, std::span(values).first(1)),
  };
  const auto id = write_safetensors(path(), tensors, {{"format", "pt"}, {"quote", "\"\\"}});
  ASSERT_TRUE(id.ok()) << id.error().message;
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->file().id(), *id);
  EXPECT_EQ(file->metadata().at("quote"), "\"\\");
  ASSERT_EQ(file->tensors().size(), tensors.size());
  for (const TensorView& tensor : tensors) {
    const TensorView* found = file->find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(found->data, tensor.data)) << tensor.name;
  }
  const auto back = file->floats("b", 1000);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(back->data()) % 8, 0U);
  EXPECT_EQ(file->floats("b", 999).error().code, Code::kCorrupt);
  EXPECT_EQ(file->floats("c", 1).error().code, Code::kCorrupt);
}

TEST_F(Safetensors, TheWriterRefusesWhatTheFormatCannotHold) {
  const std::vector<float> values(4);
  const auto write = [&](std::vector<TensorView> tensors) {
    return write_safetensors(path(), tensors, {}).ok();
  };
  EXPECT_FALSE(write({float_tensor("a", {5}, values)}));
  EXPECT_FALSE(write({float_tensor("a", {4}, values), float_tensor("a", {4}, values)}));
  EXPECT_FALSE(write({float_tensor("__metadata__", {4}, values)}));
  EXPECT_FALSE(write({{"a", "F31", {4}, std::as_bytes(std::span(values))}}));
}

TEST_F(Safetensors, EveryWayAHeaderCanBeWrongHasItsName) {
  const auto tensor = [](std::string_view name, std::string_view shape, std::string_view offsets) {
    return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":{}}})", name, shape, offsets);
  };
  const auto braced = [](const std::vector<std::string>& parts) {
    return fmt::format("{{{}}}", fmt::join(parts, ","));
  };
  EXPECT_EQ(problem(braced({tensor("a", "[2]", "[0,8]")}), 8), "");
  EXPECT_EQ(problem(braced({tensor("a", "[2]", "[0,8]")}) + "   ", 8), "");
  EXPECT_EQ(problem("{}", 0), "");
  EXPECT_THAT(problem("{}", 0, kMaxSafetensorsHeader + 1), HasSubstr("HeaderTooLarge"));
  EXPECT_THAT(problem("{}", 0, ~uint64_t{0}), HasSubstr("HeaderTooLarge"));
  EXPECT_THAT(problem("{}", 5, 8), HasSubstr("InvalidHeaderLength"));
  EXPECT_THAT(problem("[]", 0), HasSubstr("InvalidHeaderStart"));
  EXPECT_THAT(problem("", 0), HasSubstr("InvalidHeaderStart"));
  EXPECT_THAT(problem("{\"a\"", 0), HasSubstr("InvalidHeaderDeserialization"));
  EXPECT_THAT(problem("{\"a\": \"\xff\"}", 0), HasSubstr("InvalidHeaderDeserialization"));
  EXPECT_THAT(problem(R"({"a": 3})", 0), HasSubstr("InvalidHeaderDeserialization"));
  EXPECT_THAT(problem(R"({"__metadata__": {"a": 3}})", 0), HasSubstr("InvalidHeaderDeserialization"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[0,8]"), tensor("a", "[2]", "[0,8]")}), 8),
              HasSubstr("a twice"));
  EXPECT_THAT(problem(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8), HasSubstr("F31"));
  EXPECT_THAT(problem(braced({tensor("a", "[-2]", "[0,8]")}), 8), HasSubstr("InvalidHeaderDeserialization"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[0,8,9]")}), 8), HasSubstr("InvalidHeaderDeserialization"));
  EXPECT_THAT(problem(braced({tensor("a", "[3]", "[0,8]")}), 8), HasSubstr("TensorInvalidInfo"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[8,0]")}), 8), HasSubstr("TensorInvalidInfo"));
  EXPECT_THAT(problem(braced({tensor("a", "[4294967296,4294967296]", "[0,8]")}), 8),
              HasSubstr("ValidationOverflow"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[0,8]"), tensor("b", "[1]", "[4,8]")}), 8),
              HasSubstr("InvalidOffset"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[4,12]")}), 12), HasSubstr("InvalidOffset"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[0,8]")}), 9), HasSubstr("MetadataIncompleteBuffer"));
  EXPECT_THAT(problem(braced({tensor("a", "[2]", "[0,8]")}), 7), HasSubstr("MetadataIncompleteBuffer"));
}

TEST_F(Safetensors, AFileOfFewBytesIsTooSmall) {
  std::ofstream(path()) << "1234567";
  EXPECT_THAT(SafetensorsFile::open(path()).error().message, HasSubstr("HeaderTooSmall"));
  std::ofstream(path()) << "";
  EXPECT_THAT(SafetensorsFile::open(path()).error().message, HasSubstr("HeaderTooSmall"));
  EXPECT_EQ(SafetensorsFile::open(path("none")).error().code, Code::kNotFound);
}

TEST_F(Safetensors, DamagedHeadersNeverCrashAndNeverReachOutsideTheFile) {
  const std::vector<float> values(64, 1.0F);
  const std::vector<TensorView> tensors = {float_tensor("model.a", {8, 4}, std::span(values).first(32)),
                                           float_tensor("model.b", {32}, std::span(values).last(32))};
  ASSERT_TRUE(write_safetensors(path(), tensors, {{"format", "pt"}}).ok());
  std::ifstream file(path(), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr int kTries = 800;
  Philox random(7);
  for (int i = 0; i < kTries; ++i) {
    std::string bad = good;
    const size_t header_end = bad.size() - 64 * sizeof(float);
    for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const size_t at = random.below(header_end);
      if (random.below(3) == 0)
        bad.erase(at, 1 + random.below(3));
      else
        bad[at] = static_cast<char>(random.next());
    }
    if (random.below(8) == 0) bad.resize(random.below(bad.size()));
    std::ofstream(path("bad"), std::ios::binary) << bad;
    const auto opened = SafetensorsFile::open(path("bad"));
    if (!opened.ok()) continue;
    for (const TensorView& tensor : opened->tensors()) {
      const auto whole = opened->file().bytes();
      ASSERT_GE(tensor.data.data(), whole.data()) << i;
      ASSERT_LE(tensor.data.data() + tensor.data.size(), whole.data() + whole.size()) << i;
    }
  }
}

}  // namespace
}  // namespace tern::trainer
