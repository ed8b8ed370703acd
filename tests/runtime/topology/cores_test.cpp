#include "runtime/topology/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace tern {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

class Cgroups : public testing::Test {
 public:
  ~Cgroups() override { fs::remove_all(mount_); }

 protected:
  Cgroups()
      : mount_(fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(mount_);
  }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text << "\n";
  }
  double quota(const std::string& membership) const { return cgroup_quota(membership, mount_.string()); }

  fs::path mount_;
};

TEST_F(Cgroups, LimitNothingWhenThereAreNone) {
  EXPECT_EQ(quota("0::/a/b\n"), kUnlimited);
  EXPECT_EQ(quota(""), kUnlimited);
  EXPECT_EQ(quota("nonsense"), kUnlimited);
}

TEST_F(Cgroups, OfVersion2GrantTheLeastAlongThePath) {
  write("cpu.max", "max 100000");
  write("a/cpu.max", "150000 100000");
  write("a/b/cpu.max", "400000 100000");
  EXPECT_EQ(quota("0::/a/b\n"), 1.5);
  EXPECT_EQ(quota("0::/\n"), kUnlimited);
}

TEST_F(Cgroups, OfVersion1AreFoundUnderTheirControllers) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota("5:cpuset:/job\n4:cpu,cpuacct:/job\n"), 3.0);
  EXPECT_EQ(quota("5:cpuset:/job\n"), kUnlimited);
}

TEST(Cores, AreAtLeastOneAndNoMoreThanPhysicalOrGranted) {
  EXPECT_EQ((Cores{.physical = {0, 1, 2, 3}, .n_threads = 8}.usable()), 4);
  EXPECT_EQ((Cores{.physical = {0, 1, 2, 3}, .n_threads = 8, .quota = 2.5}.usable()), 2);
  EXPECT_EQ((Cores{.physical = {0, 1, 2, 3}, .n_threads = 8, .quota = 0.5}.usable()), 1);
}

TEST(Cores, RespectTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Cores cores = find_cores();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(cores.n_threads, 1);
  EXPECT_EQ(cores.usable(), 1);
  EXPECT_GE(find_cores().n_threads, CPU_COUNT(&before) > 1 ? 2 : 1);
}

TEST(Cores, OfProcessesThatShareAMachineAreCountedOnce) {
  EXPECT_EQ(usable_together(std::vector<std::string>{"0,1,2,3", "0,1,2,3"}), 4);
  EXPECT_EQ(usable_together(std::vector<std::string>{"0", "1"}), 2) << "each bound to one of its own";
  EXPECT_EQ(usable_together(std::vector<std::string>{"0,1/1.5", "2,3"}), 1) << "a quota bounds them all";
  EXPECT_EQ(usable_together(std::vector<std::string>{to_text(find_cores())}), usable_cores());
}

}  // namespace
}  // namespace tern
