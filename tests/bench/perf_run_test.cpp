#include "bench/perf_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/runtime/bootstrap/free_port.h"

namespace tern::bench {
namespace {

using testing::HasSubstr;

struct Ran {
  int status = -1;
  std::string out;
};

std::string read_all(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

std::vector<const char*> with_name(const PerfCollective& collective, std::vector<const char*> args) {
  args.insert(args.begin(), collective.name.data());
  return args;
}

/// Ranks as threads of this process.
Ran run_threads(const PerfCollective& collective, const std::vector<const char*>& args) {
  std::FILE* file = std::tmpfile();
  Ran ran;
  ran.status = run_perf(collective, with_name(collective, args), file);
  ran.out = read_all(file);
  std::fclose(file);
  return ran;
}

const PerfCollective& row(std::string_view name) {
  return **find_perf_collective(name);
}

std::vector<std::string> rows_of(const std::string& out) {
  std::vector<std::string> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("#")) rows.push_back(line);
  return rows;
}

TEST(PerfRun, EveryCollectiveIsRightOnRanksAsThreads) {
  for (const PerfCollective& collective : perf_collectives()) {
    for (const char* n : {"1", "2", "3"}) {
      const Ran ran = run_threads(collective, {"-t", n, "-b", "16", "-e", "64K", "-f", "16", "-n", "2"});
      EXPECT_EQ(ran.status, 0) << collective.name << " ranks " << n << "\n" << ran.out;
      EXPECT_THAT(ran.out, HasSubstr("# Out of bounds values : 0 OK"));
      EXPECT_EQ(rows_of(ran.out).size(), 4U) << ran.out;
    }
  }
}

TEST(PerfRun, RowsHaveTheColumnsThatScriptsCutOut) {
  const Ran ran = run_threads(row("all_reduce"), {"-t", "2", "-b", "1K", "-e", "1K", "-n", "2"});
  ASSERT_EQ(rows_of(ran.out).size(), 1U) << ran.out;
  const std::string number = R"( +[0-9][0-9.e+]*)";
  const std::regex columns("        1024           256     float     sum      -1" + number + number + number +
                           "       0" + number + number + number + "       0");
  EXPECT_TRUE(std::regex_match(rows_of(ran.out)[0], columns)) << rows_of(ran.out)[0];
}

TEST(PerfRun, AllTypesAndOperatorsAreRight) {
  const Ran ran = run_threads(row("all_reduce"),
                              {"-t", "3", "-b", "1000", "-e", "1000", "-n", "1", "-o", "all", "-d", "all"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(rows_of(ran.out).size(), kDtypes.size() * kOpNames.size()) << ran.out;
}

TEST(PerfRun, EveryFlagThatChangesTheCallsKeepsThemRight) {
  const std::vector<std::vector<const char*>> cases = {{"-R", "0"},
                                                       {"-u", "1"},
                                                       {"-m", "3"},
                                                       {"-c", "3"},
                                                       {"-N", "2"},
                                                       {"-T", "20"},
                                                       {"-a", "0"},
                                                       {"-I", "1"},
                                                       {"-C", "1"},
                                                       {"-S", "1"},
                                                       {"-M", "1"},
                                                       {"--predict", "1"},
                                                       {"-g", "2"},
                                                       {"--algorithm", "ring"},
                                                       {"--algorithm", "all_reduce:0-inf=ring"},
                                                       {"--transport", "inproc"}};
  for (std::vector<const char*> args : cases) {
    const std::string flag = args[0];
    for (const char* more : {"-t", "2", "-b", "4K", "-e", "4K", "-n", "2"}) args.push_back(more);
    const Ran ran = run_threads(row("all_reduce"), args);
    EXPECT_EQ(ran.status, 0) << flag << "\n" << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("# Out of bounds values : 0 OK")) << flag;
    EXPECT_EQ(rows_of(ran.out).size(), flag == "-N" ? 2U : 1U) << ran.out;
  }
}

TEST(PerfRun, BroadcastFromEveryRootIsRight) {
  const Ran ran = run_threads(row("broadcast"), {"-t", "3", "-r", "-1", "-b", "4K", "-e", "4K", "-n", "1"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(rows_of(ran.out).size(), 3U) << ran.out;
}

TEST(PerfRun, CodecRunsReportBytesOnTheWireAndTheError) {
  const auto json = std::filesystem::temp_directory_path() / fmt::format("perf_run_{}.json", getpid());
  for (const char* codec : {"q8", "topk:k=32", "bf16"}) {
    const Ran ran = run_threads(row("all_reduce"), {"-t", "4", "-b", "1M", "-e", "1M", "-n", "2", "--codec",
                                                    codec, "--json", json.c_str()});
    EXPECT_EQ(ran.status, 0) << codec << "\n" << ran.out;
    const auto report = nlohmann::json::parse(std::ifstream(json));
    const auto& placement = report["results"][0]["out_of_place"];
    EXPECT_EQ(placement["nwrong"], 0);
    EXPECT_GT(placement["vnmse"], 0);
    EXPECT_LT(placement["vnmse"], 1);
    EXPECT_LT(placement["bytes_on_wire"], 2 * 3 * (1 << 18)) << "less than the dense bytes, " << codec;
  }
  std::filesystem::remove(json);
}

TEST(PerfRun, PerIterationTimesAreWrittenForEveryRank) {
  const auto json = std::filesystem::temp_directory_path() / fmt::format("perf_iter_{}.json", getpid());
  const Ran ran = run_threads(row("all_reduce"), {"-t", "2", "-b", "1K", "-e", "1K", "-n", "5", "-I", "1",
                                                  "-K", "2", "--json", json.c_str()});
  EXPECT_EQ(ran.status, 0) << ran.out;
  const auto stats = nlohmann::json::parse(std::ifstream(json))["results"][0]["in_place_per_iter"];
  std::filesystem::remove(json);
  EXPECT_EQ(stats["skipped_iterations"], 2);
  EXPECT_EQ(stats["times_us"].size(), 3U);
  EXPECT_EQ(stats["per_process_max_times_us"].size(), 2U);
}

std::string error_of(const PerfCollective& collective, const std::vector<const char*>& args,
                     int expected_status) {
  testing::internal::CaptureStderr();
  const Ran ran = run_threads(collective, args);
  EXPECT_EQ(ran.status, expected_status) << ran.out;
  return testing::internal::GetCapturedStderr();
}

TEST(PerfRun, WhatCannotRunIsOneSentenceOnStderr) {
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  const std::string flag = error_of(row("all_reduce"), {"--bogus", "1"}, 2);
  EXPECT_THAT(flag, HasSubstr("all_reduce_perf: "));
  EXPECT_THAT(flag, HasSubstr("--bogus"));
  EXPECT_EQ(lines(flag), 1) << flag;
  struct Wrong {
    std::string_view collective;
    std::vector<const char*> args;
    const char* says;
  };
  const std::vector<Wrong> cases = {
      {"all_reduce",
       {"-d", "complex"},
       "--datatype complex: unknown dtype \"complex\"; allowed: fp32 (float), "},
      {"all_reduce", {"-d", "complex"}, "fp8e5m2 (f8e5m2) or all\n"},
      {"all_reduce", {"-o", "xor"}, "--op xor: unknown reduction \"xor\"; allowed: sum, prod, "},
      {"all_reduce", {"-o", "xor"}, "mulsum or all\n"},
      {"all_reduce", {"--codec", "q9"}, "--codec q9: "},
      {"all_reduce", {"--codec", "topk:k=99"}, "--codec topk:k=99: "},
      {"broadcast", {"--codec", "q8"}, "--codec q8: codecs apply to all_reduce and reduce_scatter"},
      {"all_reduce", {"--transport", "pigeon"}, "--transport pigeon: "},
      {"all_reduce", {"--algorithm", "rng"}, "--algorithm rng: "},
      {"all_reduce", {"--algorithm", "ring@big"}, "--algorithm ring@big: "},
      {"all_reduce", {"--algorithm", "all_reduce:0-4k=rng"}, "--algorithm all_reduce:0-4k=rng: "},
      {"all_gather", {"--algorithm", "one_shot"}, "--algorithm one_shot: one_shot has no all_gather"},
      {"all_reduce", {"--algorithm", "ring", "--codec", "q8"}, "ring cannot carry --codec q8"},
      {"broadcast", {"-r", "2"}, "--root 2 is not a rank of a world of 2"}};
  for (Wrong wrong : cases) {
    for (const char* more : {"-t", "2", "-b", "8", "-e", "8"}) wrong.args.push_back(more);
    const Ran ran = run_threads(row(wrong.collective), wrong.args);
    EXPECT_EQ(ran.out, "") << wrong.says << ": before the header";
    const std::string said = error_of(row(wrong.collective), wrong.args, 2);
    EXPECT_THAT(said, HasSubstr(wrong.says));
    EXPECT_EQ(lines(said), 1) << said;
  }
  EXPECT_THAT(error_of(row("all_reduce"), {"-b", "8", "-e", "8", "-J", "/no/such/folder/x.json"}, 1),
              HasSubstr("/no/such/folder/x.json"));
}

TEST(PerfRun, AFailureOfACallThatNobodyAskedForSaysWhatItIsFor) {
  ::setenv("TERN_FAULTS", "rank=0,cut=1", 1);
  const std::string said = error_of(row("broadcast"), {"-t", "2", "-b", "8", "-e", "8", "-w", "0"}, 1);
  ::unsetenv("TERN_FAULTS");
  EXPECT_THAT(said, HasSubstr("broadcast_perf: in the barrier before broadcast: the connection to rank 1"));
}

void forget_to_reduce(const PerfCall& /*call*/, std::vector<Operation>& to) {
  to.push_back(ops::barrier());
}
void write_past_the_end(const PerfCall& call, std::vector<Operation>& to) {
  const ConstView send(call.send.data, call.send.n + 1, call.send.dtype);
  const View recv(call.recv.data, call.recv.n + 1, call.recv.dtype);
  to.push_back(ops::all_reduce(send, recv, call.op, call.options));
}

TEST(PerfRun, WrongResultsAndWritesOutsideThemFail) {
  PerfCollective broken = row("all_reduce");
  broken.append = forget_to_reduce;
  const Ran forgotten = run_threads(broken, {"-t", "2", "-b", "1K", "-e", "1K", "-n", "1"});
  EXPECT_EQ(forgotten.status, 1);
  EXPECT_THAT(forgotten.out, HasSubstr("# Out of bounds values : 1024 FAILED"))
      << "256 elements, 2 ranks, 2 placements";
  broken.append = write_past_the_end;
  const Ran outside = run_threads(broken, {"-t", "2", "-b", "1K", "-e", "1K", "-n", "1"});
  EXPECT_EQ(outside.status, 1);
  EXPECT_THAT(outside.out, testing::ContainsRegex("# Out of bounds values : [1-9][0-9]* FAILED"));
}

TEST(PerfRun, ABandwidthBelowTheOneAskedForFails) {
  ::setenv("NCCL_TESTS_MIN_BW", "1e9", 1);
  const Ran ran = run_threads(row("all_reduce"), {"-t", "2", "-b", "1K", "-e", "1K", "-n", "1"});
  ::unsetenv("NCCL_TESTS_MIN_BW");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr(" FAILED\n"));
}

/// One process per rank, as torchrun and srun start them.
Ran run_processes(const PerfCollective& collective, int n_ranks, const std::vector<const char*>& args) {
  std::FILE* file = std::tmpfile();
  const std::string port = std::to_string(free_port());
  std::vector<pid_t> children;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(n_ranks).c_str(), 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", port.c_str(), 1);
      const int status = run_perf(collective, with_name(collective, args), file);
      std::fflush(file);
      ::_exit(status);
    }
    children.push_back(child);
  }
  Ran ran = {.status = 0, .out = ""};
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ran.status = std::max(ran.status, WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  ran.out = read_all(file);
  std::fclose(file);
  return ran;
}

TEST(PerfRun, TwoProcessesOfARankEachAreRight) {
  for (const PerfCollective& collective : perf_collectives()) {
    for (const char* memory : {"0", "1"}) {
      const Ran ran =
          run_processes(collective, 2, {"-b", "64", "-e", "1M", "-f", "128", "-n", "2", "-R", memory});
      EXPECT_EQ(ran.status, 0) << collective.name << "\n" << ran.out;
      EXPECT_THAT(ran.out, HasSubstr("# Out of bounds values : 0 OK"));
      EXPECT_THAT(ran.out, HasSubstr("#  Rank  1 Group  0 Pid"));
    }
  }
}

TEST(PerfRun, ThreadsAsRanksOfSeveralProcessesAreRefused) {
  EXPECT_EQ(run_processes(row("all_reduce"), 2, {"-t", "2", "-b", "8", "-e", "8"}).status, 2);
}

/// What a process says as `rank` of two when it is alone.
std::string said_alone_as(const char* rank, const char* address) {
  ::setenv("RANK", rank, 1);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("MASTER_ADDR", address, 1);
  ::setenv("MASTER_PORT", std::to_string(free_port()).c_str(), 1);
  ::setenv("TERN_BOOTSTRAP_TIMEOUT", "0.05", 1);
  std::string said = error_of(row("all_reduce"), {"-b", "8", "-e", "8"}, 1);
  for (const char* variable : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TERN_BOOTSTRAP_TIMEOUT"})
    ::unsetenv(variable);
  return said;
}

TEST(PerfRun, EveryRankSaysThatItCannotReachTheStore) {
  for (const char* rank : {"0", "1"}) {
    const std::string said = said_alone_as(rank, "no-such-host.invalid");
    EXPECT_THAT(said, HasSubstr("the address \"no-such-host.invalid\" cannot be resolved"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  EXPECT_THAT(said_alone_as("1", "127.0.0.1"), HasSubstr("rank 1 could not join rank 0's store"));
  EXPECT_THAT(said_alone_as("0", "127.0.0.1"), HasSubstr("rank 1 of 2 did not come"));
}

TEST(PerfRun, EveryRankSaysWhatIsWrongWithItsOwnSettings) {
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("TERN_TIMEOUT", "soon", 1);
  EXPECT_THAT(error_of(row("all_reduce"), {}, 2), HasSubstr("TERN_TIMEOUT=\"soon\""));
  for (const char* variable : {"RANK", "WORLD_SIZE", "TERN_TIMEOUT"}) ::unsetenv(variable);
}

}  // namespace
}  // namespace tern::bench
