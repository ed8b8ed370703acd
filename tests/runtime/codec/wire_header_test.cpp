#include "runtime/codec/wire_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/philox.h"
#include "tests/runtime/codec/encoded.h"
#include "tests/runtime/codec/message_fuzz.h"

namespace tern {
namespace {

using testing::HasSubstr;

Status check(const test::Message& m) {
  return check_header({m.wire(), m.n_wire_bytes(), 5}, {m.spec, m.tag, m.dtype, m.n});
}

TEST(WireHeader, OfEveryCodecAndSizeIsAcceptedByItsReceiver) {
  for (const CodecSpec& spec : test::all_specs()) {
    for (const size_t n : {0, 1, 128, 5000}) {
      for (const bool checksum : {false, true}) {
        const auto in = test::gradient(test::kGradientKinds[0], n, 1);
        const auto status = check(test::encode(spec, in, {.checksum = checksum}));
        EXPECT_TRUE(status.ok()) << to_string(spec) << " n=" << n << ": " << status.error().message;
      }
    }
  }
}

TEST(WireHeader, SaysWhatTheReceiverExpectedAndWhoSentWhat) {
  const auto in = test::gradient(test::kGradientKinds[0], 5000, 1);
  const test::Message good = test::encode({.id = CodecId::kTopk, .k = 32}, in);
  struct Case {
    std::string what;
    void (*change)(test::Message&);
    Code code;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {"another step",
       [](test::Message& m) { m.tag.step = 8; },
       Code::kMismatch,
       {"step 7", "expected step 8"}},
      {"another bucket",
       [](test::Message& m) { m.tag.bucket = 4; },
       Code::kMismatch,
       {"bucket 3", "bucket 4"}},
      {"another offset",
       [](test::Message& m) { m.tag.element_offset = 0; },
       Code::kMismatch,
       {"1048576", "offset 0"}},
      {"another codec",
       [](test::Message& m) { m.spec = {.id = CodecId::kQ8}; },
       Code::kMismatch,
       {"topk:k=32", "q8"}},
      {"another k", [](test::Message& m) { m.spec.k = 64; }, Code::kMismatch, {"topk:k=32", "topk:k=64"}},
      {"another count",
       [](test::Message& m) { m.n = 4999; },
       Code::kMismatch,
       {"5000 elements of fp32", "4999"}},
      {"another type",
       [](test::Message& m) { m.dtype = Dtype::kBfloat16; },
       Code::kMismatch,
       {"elements of fp32", "of bf16"}},
      {"a byte more",
       [](test::Message& m) { m.bytes.push_back(std::byte{0}); },
       Code::kMismatch,
       {"bytes for 5000"}},
      {"cut in the payload", [](test::Message& m) { m.bytes.resize(40); }, Code::kMismatch, {"40 bytes"}},
      {"cut in the header", [](test::Message& m) { m.bytes.resize(31); }, Code::kCorrupt, {"31 bytes", "32"}},
      {"nothing", [](test::Message& m) { m.bytes.clear(); }, Code::kCorrupt, {"0 bytes"}},
      {"not Tern's", [](test::Message& m) { m.bytes[0] = std::byte{'X'}; }, Code::kCorrupt, {"magic 0x5258"}},
      {"of the future", [](test::Message& m) { m.bytes[2] = std::byte{9}; }, Code::kCorrupt, {"version 9"}},
      {"damaged", [](test::Message& m) { m.bytes[16] ^= std::byte{1}; }, Code::kCorrupt, {"checksum"}},
  };
  for (const Case& c : cases) {
    test::Message message = good;
    c.change(message);
    const Status status = check(message);
    ASSERT_FALSE(status.ok()) << c.what;
    EXPECT_EQ(status.error().code, c.code) << c.what << ": " << status.error().message;
    EXPECT_EQ(status.error().rank, 5) << c.what;
    EXPECT_THAT(status.error().message, HasSubstr("rank 5 sent")) << c.what;
    for (const std::string& part : c.says) EXPECT_THAT(status.error().message, HasSubstr(part)) << c.what;
  }
}

/// Changes 1 to 4 random bytes in [0, n); true when a byte is different afterwards.
bool mutate(std::vector<std::byte>& bytes, size_t n, Philox& random) {
  const auto before = bytes;
  for (uint32_t i = 0; i <= random.next() % 4; ++i) {
    bytes[random.next() % n] ^= static_cast<std::byte>(1 << random.next() % 8);
  }
  return bytes != before;
}

TEST(WireHeader, NoMutationOfTheHeaderPasses) {
  Philox random(42);
  const auto in = test::gradient(test::kGradientKinds[0], 300, 1);
  for (const CodecSpec& spec : test::all_specs()) {
    const auto good = test::encode(spec, in);
    for (int round = 0; round < 3000; ++round) {
      auto bad = good;
      const bool changed = mutate(bad.bytes, sizeof(WireHeader), random);
      ASSERT_EQ(check(bad).ok(), !changed) << to_string(spec);
    }
  }
}

TEST(WireHeader, NoMutationOfAChecksummedMessagePasses) {
  Philox random(43);
  const auto in = test::gradient(test::kGradientKinds[0], 5000, 1);
  for (const CodecSpec& spec : test::all_specs()) {
    const auto good = test::encode(spec, in, {.checksum = true});
    for (int round = 0; round < 300; ++round) {
      auto bad = good;
      const bool changed = mutate(bad.bytes, bad.bytes.size(), random);
      ASSERT_EQ(check(bad).ok(), !changed) << to_string(spec);
    }
  }
}

TEST(WireHeader, RandomBytesAreRejected) {
  Philox random(44);
  for (const CodecSpec& spec : test::all_specs()) {
    const auto good = test::encode(spec, std::vector<float>(130, 1.0F));
    for (int round = 0; round < 1000; ++round) {
      auto bad = good;
      for (std::byte& b : bad.bytes) b = static_cast<std::byte>(random.next());
      bad.bytes.resize(random.next() % (bad.bytes.size() + 1));
      ASSERT_FALSE(check(bad).ok()) << to_string(spec);
    }
  }
}

TEST(WireHeader, AndPayloadsOfAnyBytesNeitherCrashNorWriteElsewhere) {
  Philox random(46);
  for (int round = 0; round < 4000; ++round) {
    std::vector<uint8_t> bytes(random.next() % 300);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next());
    if (round % 2 == 0 && bytes.size() > 10) {  // like a header, so that the checks behind the first are met
      bytes[4] = 'T';
      bytes[5] = 'R';
      bytes[6] = kWireVersion;
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

TEST(Decoding, DamagedPayloadsStayInsideTheOutput) {
  Philox random(45);
  for (const CodecSpec& spec : test::all_specs()) {
    for (const size_t n : {1, 100, 4096, 4196}) {
      auto message = test::encode(spec, test::gradient(test::kGradientKinds[0], n, 1));
      for (size_t i = sizeof(WireHeader); i < message.bytes.size(); ++i) {
        message.bytes[i] = static_cast<std::byte>(random.next());
      }
      std::vector<float> guarded(n + 2 * 4096, 5.0F);
      test::decode_run(message, std::span(guarded).subspan(4096, n), Decode::kSet);
      test::decode_run(message, std::span(guarded).subspan(4096, n), Decode::kAdd);
      EXPECT_THAT(std::span(guarded).first(4096), testing::Each(5.0F)) << to_string(spec) << " n=" << n;
      EXPECT_THAT(std::span(guarded).last(4096), testing::Each(5.0F)) << to_string(spec) << " n=" << n;
    }
  }
}

}  // namespace
}  // namespace tern
