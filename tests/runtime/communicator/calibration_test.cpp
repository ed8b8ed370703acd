#include "runtime/communicator/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/communicator/calibrate.h"
#include "runtime/communicator/cost.h"
#include "tests/ranks.h"
#include "tests/runtime/bootstrap/free_port.h"
#include "tests/runtime/bootstrap/process.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

TEST(Calibration, WrittenAndReadItIsTheSame) {
  Calibration c = built_in_calibration();
  c.network = {.alpha = 3e-6, .beta = 1 / 50e9};
  c.copy_beta = 1 / 8e9;
  const auto q8 = static_cast<size_t>(CodecId::kQ8);
  c.codecs[q8] = {1 / 3e9, 1 / 4e9};
  const auto read = parse_calibration(to_json(c), "speeds.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_DOUBLE_EQ(read->network.alpha, 3e-6);
  EXPECT_DOUBLE_EQ(read->network.beta, 1 / 50e9);
  EXPECT_DOUBLE_EQ(read->copy_beta, 1 / 8e9);
  EXPECT_DOUBLE_EQ(read->codecs[q8].encode_beta, 1 / 3e9);
  EXPECT_DOUBLE_EQ(read->codecs[q8].decode_beta, 1 / 4e9);
  EXPECT_DOUBLE_EQ(read->reduce_beta, c.reduce_beta);
  EXPECT_TRUE(read->shared_memory.receiver_reads);
}

TEST(Calibration, WhatAFileDoesNotSayIsBuiltIn) {
  const auto read = parse_calibration(R"({"loopback": {"gb_per_s": 5}})", "speeds.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_DOUBLE_EQ(read->loopback.beta, 1 / 5e9);
  EXPECT_DOUBLE_EQ(read->loopback.alpha, built_in_calibration().loopback.alpha);
  EXPECT_EQ(read->copy_beta, built_in_calibration().copy_beta);
}

TEST(Calibration, WrongFilesAreOneSentenceWithTheValue) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\n \"loopback\": }", "line 2"},
      {R"({"loopbak": {}})", "did you mean \"loopback\""},
      {R"({"loopback": 5})", "loopback is 5"},
      {R"({"network": {"alpha_us": -1}})", "network.alpha_us is -1"},
      {R"({"codecs": {"q9": {}}})", "codecs has no key \"q9\""},
      {R"({"codecs": {"q8": {"encode_gb_per_s": 0}}})", "codecs.q8.encode_gb_per_s is 0"},
      {R"({"copy_gb_per_s": "fast"})", "copy_gb_per_s is \"fast\""}};
  for (const auto& [text, says] : cases) {
    const auto read = parse_calibration(text, "speeds.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.error().message, HasSubstr(says));
    EXPECT_THAT(read.error().message, HasSubstr("speeds.json"));
  }
}

TEST(Calibration, ACommunicatorIsNotMadeWithAFileThatIsNotThere) {
  Config config = testing::quick_config();
  config.calibration = "/nowhere/speeds.json";
  testing::on_worlds(1, config, [](const World& world) {
    const auto communicator = Communicator::create(world);
    ASSERT_FALSE(communicator.ok());
    EXPECT_THAT(communicator.error().message, HasSubstr("/nowhere/speeds.json"));
  });
}

TEST(Calibration, ThePlannerPricesWithItsLinks) {
  Calibration speeds = built_in_calibration();
  speeds.shared_memory.beta = 1 / 3e9;
  speeds.reduce_beta = 1 / 2e9;
  testing::on_worlds(1, testing::quick_config(), [&](World world) {
    world.size = world.local_size = 2;
    world.host_ids.assign(2, world.host_id);
    const CostModel model = cost_model(world, world.all_ranks(), std::vector<int>{2, 2}, speeds);
    EXPECT_EQ(model.link(0, 1).beta, 1 / 3e9);
    EXPECT_EQ(model.reduce_beta, 1 / 2e9);
  });
}

TEST(Calibration, EncodedPricesAreThoseOfTheCodecAndTheElements) {
  CodecSpeeds speeds = built_in_calibration().codecs;
  speeds[static_cast<size_t>(CodecId::kBf16)] = {2e-10, 1e-10};
  const CostModel fp32 = encoded_model({}, {.id = CodecId::kBf16}, 4, speeds);
  EXPECT_DOUBLE_EQ(fp32.wire_ratio, 0.5);
  EXPECT_DOUBLE_EQ(fp32.encode_beta, 2e-10);
  EXPECT_DOUBLE_EQ(fp32.decode_beta, 1e-10);
  const CostModel fp16 = encoded_model({}, {.id = CodecId::kQ8}, 2, speeds);
  EXPECT_DOUBLE_EQ(fp16.wire_ratio, 8.125 / 16);
  EXPECT_DOUBLE_EQ(fp16.encode_beta, 2 * speeds[static_cast<size_t>(CodecId::kQ8)].encode_beta);
}

TEST(Calibrate, ATransferThatWasHeldUpStillGivesASpeedThatCanBeReadBack) {
  EXPECT_DOUBLE_EQ(added_beta(1e-6, 11e-6, 1000), 1e-8);
  for (const double less : {11e-6, 12e-6, 1.0}) {
    Calibration c = built_in_calibration();
    c.shared_memory.beta = added_beta(less, 11e-6, 256 << 10);
    EXPECT_DOUBLE_EQ(c.shared_memory.beta, 11e-6 / 4 / (256 << 10)) << less;
    const auto read = parse_calibration(to_json(c), "speeds.json");
    ASSERT_TRUE(read.ok()) << read.error().message;
  }
}

TEST(Calibrate, RankZeroMeasuresFiniteSpeedsAndOthersAreDoneToo) {
  testing::on_worlds(3, testing::quick_config(), [](const World& world) {
    const auto measured = calibrate(world);
    ASSERT_TRUE(measured.ok()) << measured.error().message;
    const Calibration built_in = built_in_calibration();
    EXPECT_EQ(measured->network.beta, built_in.network.beta);  // there is none to measure
    if (world.rank > 0) return;
    EXPECT_GT(measured->copy_beta, 0);
    for (const CodecInfo& row : codecs()) {
      if (row.id == CodecId::kNone) continue;
      const CodecSpeed& speed = measured->codecs[static_cast<size_t>(row.id)];
      EXPECT_GT(speed.encode_beta, 0) << row.name;
      EXPECT_NE(speed.encode_beta, row.speed.encode_beta) << row.name;
      EXPECT_GT(speed.decode_beta, 0) << row.name;
    }
    EXPECT_GT(measured->reduce_beta, 0);
    EXPECT_GT(measured->shared_memory.alpha, 0);
    EXPECT_GT(measured->shared_memory.beta, 0);
    EXPECT_NE(measured->shared_memory.beta, built_in.shared_memory.beta);
    EXPECT_TRUE(measured->shared_memory.receiver_reads);
  });
}

/// Four processes on two hosts, two each.
constexpr int kProcesses = 4;
int on_two_hosts(int rank, int port, const std::string& transport,
                 const std::function<int(const World&)>& body) {
  Config config;
  config.transport = transport;
  config.host_id = fmt::format("host {}", rank / 2);
  config.heap_bytes = uint64_t{64} << 20;
  config.bootstrap_timeout = Seconds(86400);  // nothing may take that long
  const auto world = World::from_tcp({rank, kProcesses, "127.0.0.1", port}, config);
  return world.ok() ? body(*world) : 90;
}

void expect_all_good(const std::string& transport, const std::function<int(const World&)>& body) {
  const int port = free_port();
  std::vector<ChildProcess> ranks;
  for (int rank = 0; rank < kProcesses; ++rank)
    ranks.emplace_back([&, rank] { return on_two_hosts(rank, port, transport, body); });
  for (int rank = 0; rank < kProcesses; ++rank)
    EXPECT_EQ(ranks[static_cast<size_t>(rank)].wait(), 0) << transport << " rank " << rank;
}

TEST(SpeedsOfHosts, AreMeasuredAndTheSameOnAllRanks) {
  expect_all_good("auto", [](const World& world) {
    const auto speeds = speeds_of(world);
    if (!speeds.ok()) return 1;
    const std::string mine = to_json(*speeds);
    if (mine == to_json(built_in_calibration())) return 2;
    const auto all = exchange(*world.store, world.rank, world.size, {"speeds", mine, Deadline()});
    if (!all.ok()) return 3;
    for (const std::string& theirs : *all)
      if (theirs != mine) return 4;
    return 0;
  });
}

TEST(SpeedsOfHosts, ThatNoTransportJoinsAreRefusedAtOnceOnEveryRank) {
  for (const char* transport : {"shm", "inproc"})
    expect_all_good(transport, [](const World& world) {
      const auto communicator = Communicator::create(world);
      if (communicator.ok()) return 1;
      return communicator.error().code == Code::kUnsupported ? 0 : 2;
    });
}

}  // namespace
}  // namespace tern
