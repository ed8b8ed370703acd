#include "runtime/bootstrap/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tern {
namespace {

using testing::HasSubstr;
using Environment = std::map<std::string, std::string, std::less<>>;

Result<Launch> launch_in(const Environment& variables) {
  return detect_launch([&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return at->second;
  });
}

TEST(Launch, IsAWorldOfOneWithoutALauncher) {
  EXPECT_EQ(launch_in({}).value(), Launch());
}

TEST(Launch, TakesTheFourVariablesOfTorchrun) {
  const Environment by_hand = {
      {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(launch_in(by_hand).value(), (Launch{Rendezvous::kTcp, 2, 4, "a", 29500}));
  Environment torchrun = by_hand;
  torchrun["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(launch_in(torchrun).value().port, 29501);
}

TEST(Launch, PrefersRankOverMpirun) {
  const Environment both = {
      {"RANK", "0"},        {"WORLD_SIZE", "2"},           {"MASTER_ADDR", "a"},
      {"MASTER_PORT", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
  EXPECT_EQ(launch_in(both).value().size, 2);
}

TEST(Launch, AsksMpiUnderMpirunAndTheMasterWhenThereIsOne) {
  Environment mpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "8"},
                        {"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "8"}};
  EXPECT_EQ(launch_in(mpirun).value(), (Launch{Rendezvous::kMpi, 1, 8, "", 0}));
  mpirun["MASTER_ADDR"] = "m";
  mpirun["MASTER_PORT"] = "7";
  EXPECT_EQ(launch_in(mpirun).value(), (Launch{Rendezvous::kTcp, 1, 8, "m", 7}));
}

TEST(Launch, FindsRankZerosNodeUnderSrun) {
  Environment srun = {{"SLURM_PROCID", "3"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"},
                      {"SLURM_JOB_ID", "1000"}};
  EXPECT_EQ(launch_in(srun).value(), (Launch{Rendezvous::kTcp, 3, 8, "10.0.0.1", 21000}));
  srun["SLURM_STEP_NODELIST"] = "node[07-12]";
  srun["SLURM_STEP_NUM_TASKS"] = "4";
  srun["MASTER_PORT"] = "5000";
  EXPECT_EQ(launch_in(srun).value(), (Launch{Rendezvous::kTcp, 3, 4, "node07", 5000}));
}

TEST(Launch, NeedsAMasterUnderAnMpirunThatItCannotAsk) {
  Environment mpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
  EXPECT_EQ(launch_in(mpich).error().code, Code::kUnsupported);
  EXPECT_THAT(launch_in(mpich).error().message, HasSubstr("MASTER_ADDR"));
  mpich["MASTER_ADDR"] = "m";
  mpich["MASTER_PORT"] = "7";
  EXPECT_EQ(launch_in(mpich).value(), (Launch{Rendezvous::kTcp, 1, 2, "m", 7}));
}

TEST(Launch, NamesTheVariableThatIsWrongOrMissing) {
  const auto message = [](const Environment& variables) {
    const auto launch = launch_in(variables);
    return launch.ok() ? std::string("no error") : launch.error().message;
  };
  EXPECT_THAT(message({{"RANK", "0"}}), HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(message({{"WORLD_SIZE", "2"}}), HasSubstr("RANK"));
  EXPECT_THAT(message({{"OMPI_COMM_WORLD_SIZE", "2"}}), HasSubstr("OMPI_COMM_WORLD_RANK is not set"));
  EXPECT_THAT(message({{"OMPI_COMM_WORLD_RANK", "0"}}), HasSubstr("OMPI_COMM_WORLD_SIZE is not set"));
  EXPECT_THAT(message({{"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK is not set"));
  EXPECT_THAT(message({{"PMI_RANK", "0"}}), HasSubstr("PMI_SIZE is not set"));
  EXPECT_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RANK=\"2\" is not a number from 0 to 1"));
  EXPECT_THAT(message({{"RANK", "0x1"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=\"0x1\""));
  EXPECT_THAT(message({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}), HasSubstr("WORLD_SIZE"));
}

TEST(Launch, ReadsTheFirstHostOfASlurmList) {
  EXPECT_EQ(first_host_of("a1"), "a1");
  EXPECT_EQ(first_host_of("a1,b2"), "a1");
  EXPECT_EQ(first_host_of("node[07-12,20],x"), "node07");
  EXPECT_EQ(first_host_of("n[3]-ib,m"), "n3-ib");
  EXPECT_EQ(first_host_of("n[3"), "n3");
  EXPECT_EQ(first_host_of(""), "");
}

}  // namespace
}  // namespace tern
