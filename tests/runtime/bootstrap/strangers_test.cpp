// Those who do not belong: wrong secrets, garbage, replays, frames that lie about their lengths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/tcp_store.h"

namespace tern {
namespace {

using testing::HasSubstr;

Deadline patient() {
  return Deadline::after(Seconds(20));
}

class StoreAmongStrangers : public testing::Test {
 protected:
  StoreAmongStrangers() {
    auto server = StoreServer::create({.size = 2, .secret = "right", .address = "127.0.0.1"}).value();
    port_ = server->port();
    host_ = join(0, "right", std::move(server)).value();
  }

  Result<std::unique_ptr<TcpStore>> join(int rank, const std::string& secret,
                                         std::unique_ptr<StoreServer> server = nullptr, int size = 2) {
    TcpStore::Options options = {.rank = rank, .size = size, .addresses = {"127.0.0.1"}, .port = port_};
    options.secret = secret;
    options.deadline = patient();
    return TcpStore::join(options, std::move(server));
  }

  Fd connect() const { return connect_to("127.0.0.1", port_, patient()).value(); }

  // What the server says before it closes the connection.
  static std::string read_to_end(const Fd& fd) {
    std::string all;
    char byte = 0;
    while (receive_all(fd.get(), &byte, 1, patient()).ok()) all += byte;
    return all;
  }

  void expect_all_is_well() {
    auto second = join(1, "right");
    ASSERT_TRUE(second.ok()) << second.error().to_string();
    ASSERT_TRUE((*second)->set("works", "yes").ok());
    EXPECT_EQ(host_->get("works", patient()).value(), "yes");
    EXPECT_FALSE(host_->failure());
  }

  int port_ = 0;
  std::unique_ptr<TcpStore> host_;
};

TEST_F(StoreAmongStrangers, RefusesARankWithAnotherSecret) {
  for (const char* secret : {"wrong", ""}) {
    const auto store = join(1, secret);
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.error().code, Code::kInvalidArgument);
    EXPECT_THAT(store.error().message, HasSubstr("rank 1 and the store of rank 0"));
    EXPECT_THAT(store.error().message, HasSubstr("TERN_SECRET probably differs"));
  }
  expect_all_is_well();
}

TEST_F(StoreAmongStrangers, TellsWhoWaitsForARankOfConnectionsThatDidNotProveTheSecret) {
  const std::vector<int> both = {0, 1};
  const auto wait_in_vain = [&] {
    const auto all = exchange_among(*host_, 0, both, {"meet", "", Deadline::after(Seconds(0.01))});
    return all.ok() ? std::string() : all.error().message;
  };
  EXPECT_THAT(wait_in_vain(), testing::EndsWith(" s"));
  static_cast<void>(join(0, "right"));  // refused for another reason
  for (int i = 0; i < 2; ++i) static_cast<void>(join(1, "wrong"));
  const Fd liar = connect();
  ASSERT_TRUE(send_all(liar.get(), make_hello({1, 2}) + std::string(kProofBytes, 'x'), patient()).ok());
  static_cast<void>(read_to_end(liar));
  EXPECT_THAT(wait_in_vain(), HasSubstr("rank 1 of 2 did not come"));
  EXPECT_THAT(wait_in_vain(), HasSubstr("; 3 connections to the store did not prove the world's secret"));
  expect_all_is_well();
  auto second = join(1, "right");
  EXPECT_EQ(host_->get(kUnprovenKey, patient()).value(), "") << "all have come";
}

TEST_F(StoreAmongStrangers, RefusesARankThatIsThereAndAWorldOfAnotherSize) {
  EXPECT_THAT(join(0, "right").error().message, HasSubstr("rank 0 of 2 has joined"));
  EXPECT_THAT(join(1, "right", nullptr, 3).error().message, HasSubstr("3 ranks; rank 0 says 2"));
  expect_all_is_well();
}

TEST_F(StoreAmongStrangers, DropsGarbageAtOnceAndGoesOn) {
  std::mt19937 random(1);
  for (const size_t n :
       {size_t{1}, kHelloBytes - 1, kHelloBytes, kHelloBytes + kProofBytes, size_t{100000}}) {
    std::string garbage(n, '\0');
    for (char& byte : garbage) byte = static_cast<char>(random());
    const Fd fd = connect();
    static_cast<void>(send_all(fd.get(), garbage, patient()));
    shutdown(fd.get(), SHUT_WR);
    EXPECT_EQ(read_to_end(fd), "") << n << " bytes";
  }
  expect_all_is_well();
}

TEST_F(StoreAmongStrangers, SaysNothingToWhomDoesNotProveTheSecret) {
  const Fd fd = connect();
  const std::string hello = make_hello({1, 2});
  Frame frame = {.type = FrameType::kSet, .key = "evil", .value = "x"};
  std::string bytes = hello + std::string(kProofBytes, 'x');
  append_frame(bytes, frame);
  ASSERT_TRUE(send_all(fd.get(), bytes, patient()).ok());
  EXPECT_EQ(read_to_end(fd).size(), kChallengeBytes);
  EXPECT_EQ(host_->get("evil", Deadline(Clock::now())).error().code, Code::kTimeout);
  expect_all_is_well();
}

TEST_F(StoreAmongStrangers, AcceptsNoReplayOfAnotherConnectionsProof) {
  const AuthKey key = auth_key("right");
  const std::string hello = make_hello({1, 2});
  std::string recorded;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Fd fd = connect();
    ASSERT_TRUE(send_all(fd.get(), hello, patient()).ok());
    std::string challenge(kChallengeBytes, '\0');
    ASSERT_TRUE(receive_all(fd.get(), challenge.data(), challenge.size(), patient()).ok());
    if (attempt == 0) {
      recorded = make_proof(key, hello, challenge);  // as a listener on the wire would have it
    } else {
      EXPECT_FALSE(check_proof(key, hello, challenge, recorded));
      ASSERT_TRUE(send_all(fd.get(), recorded, patient()).ok());
      EXPECT_EQ(read_to_end(fd), "");
    }
  }
  expect_all_is_well();
}

TEST_F(StoreAmongStrangers, ManyIdleConnectionsKeepNoRankOut) {
  std::vector<Fd> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(connect());
  expect_all_is_well();
}

TEST_F(StoreAmongStrangers, AMemberThatSendsABrokenFrameIsLost) {
  const AuthKey key = auth_key("right");
  const std::string hello = make_hello({1, 2});
  const Fd fd = connect();
  ASSERT_TRUE(send_all(fd.get(), hello, patient()).ok());
  std::string challenge(kChallengeBytes, '\0');
  ASSERT_TRUE(receive_all(fd.get(), challenge.data(), challenge.size(), patient()).ok());
  ASSERT_TRUE(send_all(fd.get(), make_proof(key, hello, challenge) + "\xff\xff\xff\xff", patient()).ok());
  const auto never = host_->get("never", patient());
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().code, Code::kPeerLost);
  EXPECT_EQ(never.error().rank, 1);
}

TEST(Handshake, TellsAWrongSecretFromSomethingElse) {
  const std::string hello = make_hello({0, 1});
  const std::string challenge = make_challenge(auth_key("a"), hello);
  EXPECT_EQ(check_challenge(auth_key("a"), hello, challenge), Verdict::kProven);
  EXPECT_EQ(check_challenge(auth_key("b"), hello, challenge), Verdict::kWrongSecret);
  EXPECT_EQ(check_challenge(auth_key("a"), make_hello({0, 1}), challenge), Verdict::kWrongSecret);
  EXPECT_EQ(check_challenge(auth_key("a"), hello, std::string(kChallengeBytes, 'x')), Verdict::kNotTern);
  EXPECT_FALSE(read_hello("short"));
  EXPECT_NE(random_secret(), random_secret());
}

TEST(Frame, SurvivesARoundTripByTheByte) {
  const Frame frame = {FrameType::kReply, 7, "key", std::string(1000, 'v')};
  std::string bytes;
  append_frame(bytes, frame);
  std::string buffer;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(take_frame(buffer).value()) << "after " << i << " bytes";
    buffer += bytes[i];
  }
  EXPECT_EQ(*take_frame(buffer).value(), frame);
  EXPECT_TRUE(buffer.empty());
}

TEST(Frame, NeverReadsPastWhatItWasGiven) {
  std::mt19937 random(2);
  std::string good;
  append_frame(good, {FrameType::kSet, 1, "k", "value"});
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    const auto frame = take_frame(bytes);
    if (!frame.ok() || !*frame) continue;
    EXPECT_LE((*frame)->key.size() + (*frame)->value.size(), good.size());
  }
  for (size_t n = 0; n < good.size(); ++n) static_cast<void>(unpack_error(std::string_view(good).substr(n)));
}

TEST(Frame, RefusesLengthsBeyondTheLimit) {
  std::string bytes = "\xff\xff\xff\xff";
  EXPECT_EQ(take_frame(bytes).error().code, Code::kCorrupt);
}

TEST(Socket, NamesTheInterfacesThatExist) {
  const auto unknown = interface_addresses("no-such-interface");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("TERN_NET_INTERFACE"));
  EXPECT_THAT(unknown.error().message, HasSubstr("lo"));
  EXPECT_THAT(interface_addresses("lo,lo").error().message, HasSubstr("\"lo,lo\""));
  EXPECT_THAT(interface_addresses("lo,lo").error().message, HasSubstr("one name, not a list"));
  EXPECT_EQ(interface_addresses("lo").value(), "127.0.0.1");
  EXPECT_THAT(interface_addresses("").value(), HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace tern
