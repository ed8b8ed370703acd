#include "trainer/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tern::trainer {
namespace {

using testing::HasSubstr;

class TokenFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = testing::TempDir() + "token_file_" + test->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    text_ = directory_ + "/text.txt";
    tokens_ = TokenFile::path_for(text_, "");
  }
  void write_text(const std::string& contents) const { std::ofstream(text_, std::ios::binary) << contents; }
  std::string token_text() const {
    const auto file = TokenFile::open(tokens_);
    return file.ok() ? std::string(file->tokens().begin(), file->tokens().end()) : file.error().message;
  }
  std::string directory_;
  std::string text_;
  std::string tokens_;
};

TEST_F(TokenFileTest, EveryByteIsAToken) {
  const std::string all("\0\x01\xff bytes\n", 10);
  write_text(all);
  ASSERT_TRUE(TokenFile::prepare(text_, tokens_).ok());
  EXPECT_EQ(token_text(), all);
}

TEST_F(TokenFileTest, AnUnchangedTextIsNotTokenisedAgainAndAChangedOneIs) {
  write_text("first");
  ASSERT_TRUE(TokenFile::prepare(text_, tokens_).ok());
  const auto made = std::filesystem::last_write_time(tokens_) - std::chrono::hours(1);
  std::filesystem::last_write_time(tokens_, made);
  ASSERT_TRUE(TokenFile::prepare(text_, tokens_).ok());
  EXPECT_EQ(std::filesystem::last_write_time(tokens_), made);
  write_text("FIRST");  // as long as before
  ASSERT_TRUE(TokenFile::prepare(text_, tokens_).ok());
  EXPECT_EQ(token_text(), "FIRST");
}

TEST_F(TokenFileTest, ADamagedTokenFileIsMadeAgain) {
  write_text("some text");
  ASSERT_TRUE(TokenFile::prepare(text_, tokens_).ok());
  std::filesystem::resize_file(tokens_, std::filesystem::file_size(tokens_) - 1);
  EXPECT_THAT(token_text(), HasSubstr("holds 8 tokens where its header says 9"));
  std::fstream(tokens_, std::ios::in | std::ios::out | std::ios::binary).write("X", 1);
  EXPECT_THAT(token_text(), HasSubstr("header is damaged"));
  ASSERT_TRUE(TokenFile::prepare(text_, tokens_).ok());
  EXPECT_EQ(token_text(), "some text");
}

TEST_F(TokenFileTest, AMissingAndAnEmptyTextAreNamed) {
  const Status missing = TokenFile::prepare(text_, tokens_);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("data.text: there is no file " + text_));
  write_text("");
  EXPECT_THAT(TokenFile::prepare(text_, tokens_).error().message, HasSubstr("is empty"));
}

TEST_F(TokenFileTest, TheCacheDirectoryIsMade) {
  write_text("some text");
  const std::string elsewhere = TokenFile::path_for(text_, directory_ + "/a/b");
  EXPECT_EQ(elsewhere, directory_ + "/a/b/text.txt.bytes.tokens");
  EXPECT_TRUE(TokenFile::prepare(text_, elsewhere).ok());
  EXPECT_TRUE(TokenFile::open(elsewhere).ok());
}

}  // namespace
}  // namespace tern::trainer
