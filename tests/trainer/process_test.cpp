// The program as users start it: processes, signals, lost ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/json_text.h"
#include "tests/runtime/bootstrap/free_port.h"
#include "tests/trainer/process.h"
#include "tests/trainer/tiny_run.h"

namespace tern::trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Seconds kPatience{60};

struct Job {
  int n_ranks = 2;
  std::string directory;
  std::vector<std::string> assignments;
  std::vector<std::string> environment;
  std::function<std::string(int rank)> environment_of_rank = {};  ///< one variable more
};

/// One process per rank, as torchrun starts them.
std::vector<Process> start(const Job& job) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < job.n_ranks; ++rank) {
    Command command;
    command.arguments = {TERN_TRAIN, kTinyConfig,
                         "--set",    "run.output_dir=" + job.directory,
                         "--set",    "data.text=" + job.directory + "/text.txt"};
    for (const std::string& assignment : job.assignments) {
      command.arguments.insert(command.arguments.end(), {"--set", assignment});
    }
    command.environment = {fmt::format("RANK={}", rank),
                           fmt::format("WORLD_SIZE={}", job.n_ranks),
                           "MASTER_ADDR=127.0.0.1",
                           fmt::format("MASTER_PORT={}", port),
                           "TERN_THREADS=1",
                           "TERN_TIMEOUT=20",
                           "TERN_BOOTSTRAP_TIMEOUT=20"};
    command.environment.insert(command.environment.end(), job.environment.begin(), job.environment.end());
    if (job.environment_of_rank) command.environment.push_back(job.environment_of_rank(rank));
    command.output = fmt::format("{}/rank_{}.out", job.directory, rank);
    ranks.emplace_back(std::move(command));
  }
  return ranks;
}

std::vector<int> wait_for_all(std::vector<Process>& ranks) {
  const Deadline deadline = Deadline::after(kPatience);
  std::vector<int> codes;
  codes.reserve(ranks.size());
  for (Process& rank : ranks) codes.push_back(rank.wait(deadline));
  return codes;
}

std::vector<int> all_of(size_t n, int code) {
  return std::vector<int>(n, code);
}

/// How many ranks complained.
int64_t n_complaints(const std::vector<Process>& ranks) {
  return std::count_if(ranks.begin(), ranks.end(), [](const Process& rank) {
    return rank.output().find("tern-train: ") != std::string::npos;
  });
}

std::string prepared_directory() {
  std::string directory = fresh_directory("run");
  write_text(directory);
  return directory;
}

TEST(Processes, TrainOverSharedMemoryAsThreadsDo) {
  const std::string directory = prepared_directory();
  auto ranks = start({.n_ranks = 4, .directory = directory});
  EXPECT_EQ(wait_for_all(ranks), all_of(4, 0)) << ranks[0].output();
  EXPECT_THAT(ranks[0].output(), HasSubstr("34,976 parameters"));
  EXPECT_THAT(ranks[0].output(), HasSubstr("12 sequences = 3 per pass x 1 passes x 4 ranks"));
  EXPECT_EQ(ranks[1].output(), "");

  const std::string threads = fresh_directory("threads");
  const auto outcomes =
      run_on_threads({.n_ranks = 4}, {"run.output_dir=" + threads, "data.text=" + directory + "/text.txt"});
  ASSERT_TRUE(outcomes.front().ok());
  const auto summary = read_json_file(directory + "/summary.json");
  ASSERT_TRUE(summary.ok());
  const double expected = outcomes.front()->summary["val_loss"];
  EXPECT_NEAR((*summary)["val_loss"].get<double>(), expected, 1e-6 * expected);
  for (const char* key :
       {"codec", "bytes_on_wire_per_step", "bytes_dense_per_step", "step_ms", "tokens_per_s",
        "exposed_percent", "train_loss", "val_loss", "sample", "steps", "parameters"}) {
    EXPECT_TRUE(summary->contains(key)) << key;
  }
  for (const char* key : {"step", "loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "comm_ms",
                          "exposed_ms", "bytes_on_wire", "bytes_dense", "codec"}) {
    EXPECT_TRUE(metrics_of(directory).back().contains(key)) << key;
  }
}

TEST(Processes, TrainOverTcpWithACodec) {
  const std::string directory = prepared_directory();
  auto ranks = start({.n_ranks = 2,
                      .directory = directory,
                      .assignments = {"communication.codec=q8", "model.hidden_size=128",
                                      "deepspeed.zero_optimization.reduce_bucket_size=100000"},
                      .environment = {"TERN_TRANSPORT=ucx", "UCX_TLS=tcp,self"}});
  const std::vector<int> codes = wait_for_all(ranks);
  if (ranks[0].output().find("built without") != std::string::npos) GTEST_SKIP() << ranks[0].output();
  EXPECT_EQ(codes, all_of(2, 0)) << ranks[0].output();
  EXPECT_EQ(metrics_of(directory).back()["codec"], "q8");
}

TEST(Processes, TrainUnderMpirun) {
  if (std::system("command -v mpirun.openmpi > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no mpirun.openmpi here";
  const std::string directory = prepared_directory();
  Command command;
  command.arguments = {
      "mpirun.openmpi", "-n", "3", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
      // Open MPI keeps memory to the end, which is not the address sanitizer's business here.
      "-x", "ASAN_OPTIONS=detect_leaks=0", TERN_TRAIN, kTinyConfig, "--set", "run.output_dir=" + directory,
      "--set", "data.text=" + directory + "/text.txt"};
  command.output = directory + "/mpirun.out";
  Process job(std::move(command));
  EXPECT_EQ(job.wait(Deadline::after(kPatience)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("x 3 ranks"));
  EXPECT_EQ(metrics_of(directory).size(), 8U);
}

TEST(Processes, AKilledRankEndsTheOthersWithOneSentenceNamingIt) {
  for (const int victim : {0, 2}) {
    const std::string directory = prepared_directory();
    auto ranks = start({.n_ranks = 3, .directory = directory, .assignments = {"run.steps=1000000"}});
    const bool running =
        wait_for_file(directory + "/metrics.jsonl", Deadline::after(kPatience),
                      [](const std::string& text) { return std::ranges::count(text, '\n') >= 3; });
    ASSERT_TRUE(running) << ranks[0].output();
    ranks[static_cast<size_t>(victim)].signal(SIGKILL);
    const std::vector<int> codes = wait_for_all(ranks);
    const size_t speaker = victim == 0 ? 1 : 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      EXPECT_EQ(codes[rank], rank == static_cast<size_t>(victim) ? 128 + SIGKILL : 1) << rank;
    }
    EXPECT_EQ(n_complaints(ranks), 1);
    EXPECT_THAT(ranks[speaker].output(), HasSubstr(fmt::format("rank {}", victim)));
  }
}

TEST(Processes, AHungRankEndsTheOthersWithinTheDeadlineAndItselfWhenItWakes) {
  const std::string directory = prepared_directory();
  auto ranks = start({.n_ranks = 3,
                      .directory = directory,
                      .assignments = {"run.steps=1000000", "communication.codec=q8", "model.hidden_size=128",
                                      "deepspeed.zero_optimization.reduce_bucket_size=100000"},
                      .environment = {"TERN_TIMEOUT=1"}});
  const bool running =
      wait_for_file(directory + "/metrics.jsonl", Deadline::after(kPatience),
                    [](const std::string& text) { return std::ranges::count(text, '\n') >= 5; });
  ASSERT_TRUE(running) << ranks[0].output();
  ranks[1].signal(SIGSTOP);
  const Deadline deadline = Deadline::after(kPatience);
  EXPECT_EQ(ranks[0].wait(deadline), 1) << ranks[0].output();
  EXPECT_EQ(ranks[2].wait(deadline), 1) << ranks[2].output();
  EXPECT_EQ(n_complaints(ranks), 1);
  EXPECT_THAT(ranks[0].output(), HasSubstr("rank 1 did not take part within 1 s"));
  ranks[1].signal(SIGCONT);
  EXPECT_EQ(ranks[1].wait(deadline), 1) << ranks[1].output();
}

TEST(Processes, AnImpossibleRunIsOneSentenceFromOneRank) {
  const std::string directory = prepared_directory();
  auto ranks =
      start({.n_ranks = 3, .directory = directory, .assignments = {"deepspeed.train_batch_size=10"}});
  EXPECT_EQ(wait_for_all(ranks), all_of(3, 1));
  EXPECT_EQ(n_complaints(ranks), 1);
  EXPECT_THAT(ranks[0].output(), HasSubstr("tern-train: the batch equation does not hold"));
}

TEST(Processes, EveryRankSaysThatItCannotReachTheStore) {
  const std::string directory = prepared_directory();
  auto ranks =
      start({.n_ranks = 3, .directory = directory, .environment = {"MASTER_ADDR=no-such-host.invalid"}});
  EXPECT_EQ(wait_for_all(ranks), all_of(3, 1));
  for (const Process& rank : ranks) EXPECT_THAT(rank.output(), HasSubstr("cannot be resolved"));
}

TEST(Processes, ADifferentSecretIsToldByTheRankThatHasItAndByRankZero) {
  const std::string directory = prepared_directory();
  Job job{.n_ranks = 2, .directory = directory, .environment = {"TERN_BOOTSTRAP_TIMEOUT=2"}};
  job.environment_of_rank = [](int rank) { return fmt::format("TERN_SECRET={}", rank); };
  auto ranks = start(job);
  EXPECT_EQ(wait_for_all(ranks), all_of(2, 1));
  EXPECT_THAT(ranks[0].output(), HasSubstr("rank 1 of 2 did not come"));
  EXPECT_THAT(ranks[0].output(), HasSubstr("1 connection to the store did not prove the world's secret"));
  EXPECT_THAT(ranks[1].output(), HasSubstr("TERN_SECRET probably differs"));
}

TEST(Processes, ASignalEndsTheRunAfterItsStepWithACheckpointToGoOnFrom) {
  const std::string directory = prepared_directory();
  auto ranks = start({.n_ranks = 2, .directory = directory, .assignments = {"run.steps=1000000"}});
  const bool running =
      wait_for_file(directory + "/metrics.jsonl", Deadline::after(kPatience),
                    [](const std::string& text) { return std::ranges::count(text, '\n') >= 3; });
  ASSERT_TRUE(running) << ranks[0].output();
  ranks[1].signal(SIGTERM);  // one rank's signal is enough
  EXPECT_EQ(wait_for_all(ranks), all_of(2, 0));
  const auto steps = checkpoint_steps(directory);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(static_cast<size_t>(steps[0]), metrics_of(directory).size());
  EXPECT_THAT(ranks[0].output(), HasSubstr("--set run.resume=" + checkpoint_path(directory, steps[0])));
}

std::string output_of(const std::vector<std::string>& arguments, int expected_code) {
  Command command;
  command.arguments = {TERN_TRAIN};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.output = fresh_directory("out") + "/out";
  Process process(std::move(command));
  EXPECT_EQ(process.wait(Deadline::after(kPatience)), expected_code) << process.output();
  return process.output();
}

TEST(CommandLine, ChecksAndDescribesRunsWithoutRanks) {
  const std::string text = "data.text=" + write_text(fresh_directory("text"));
  EXPECT_THAT(output_of({kTinyConfig, "--check-config", "--ranks", "4", "--set", text}, 0),
              HasSubstr("is a valid run for 4 ranks"));
  for (const char* flag : {"--check-config", "--dry-run"})
    EXPECT_THAT(output_of({kTinyConfig, flag, "--set", "data.text=/nowhere/text"}, 1),
                HasSubstr("data.text: there is no file /nowhere/text"));
  EXPECT_THAT(output_of({kTinyConfig, "--check-config", "--ranks", "5"}, 1), HasSubstr("of 5 ranks"));
  EXPECT_THAT(output_of({kTinyConfig, "--dry-run", "--ranks", "4", "--set", text}, 0),
              HasSubstr("34,976 parameters"));
  EXPECT_THAT(
      output_of({TERN_SOURCE_DIR "/trainer/configs/kjv.json", "--dry-run", "--ranks", "4", "--set", text}, 0),
      HasSubstr("x 4 ranks"));
  EXPECT_THAT(output_of({"/nowhere/run.json"}, 1), HasSubstr("there is no file /nowhere/run.json"));
  EXPECT_THAT(output_of({}, 1), HasSubstr("give a RUN.json"));
  EXPECT_THAT(output_of({"--keys"}, 0), HasSubstr("| `deepspeed.train_batch_size` |"));
  EXPECT_THAT(output_of({kTinyConfig, "--set", "run.steps"}, 1), HasSubstr("key.path=value"));
  EXPECT_THAT(output_of({kTinyConfig, "--stepz"}, 2), Not(testing::IsEmpty()));
  EXPECT_THAT(output_of({kTinyConfig, "--ranks", "4"}, 2),
              HasSubstr("--ranks 4 is for --check-config and --dry-run"));
}

}  // namespace
}  // namespace tern::trainer
