#include "trainer/storage/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/storage/file_size_limit.h"
#include "trainer/storage/mapped_file.h"

namespace tern::trainer {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(OutputFile, TheHashIsThatOfTheContentsHoweverTheyWereCut) {
  const std::string path = testing::TempDir() + "output_file_hash";
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("one ").ok());
  ASSERT_TRUE(file->write("two").ok());
  const auto id = file->close();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(MappedFile::open(path)->id(), *id);
  EXPECT_EQ(contents(path), "one two");
}

TEST(OutputFile, ReplacingLeavesNoPartialFileBehind) {
  const std::string directory = testing::TempDir() + "output_file_replace";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(replace_file(directory + "/a", "old").ok());
  ASSERT_TRUE(replace_file(directory + "/a", "new").ok());
  EXPECT_EQ(contents(directory + "/a"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

TEST(OutputFile, AFullDiskLeavesTheOldFileAndSaysSo) {
  const std::string directory = testing::TempDir() + "output_file_full";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(replace_file(directory + "/a", "old").ok());
  Status replaced;
  {
    const FileSizeLimit limit(1000);
    replaced = replace_file(directory + "/a", std::string(5000, 'x'));
  }
  ASSERT_FALSE(replaced.ok());
  EXPECT_EQ(replaced.error().code, Code::kIo);
  EXPECT_THAT(replaced.error().message, testing::HasSubstr("beyond 1000 bytes"));
  EXPECT_EQ(contents(directory + "/a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

TEST(OutputFile, ADirectoryThatIsNotThereIsNamed) {
  EXPECT_THAT(OutputFile::create("/nowhere/a").error().message,
              testing::HasSubstr("cannot create /nowhere/a"));
}

}  // namespace
}  // namespace tern::trainer
