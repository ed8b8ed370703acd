#include "runtime/exec/signature.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

Signature sample() {
  return {.sequence = 70001,
          .collective = Collective::kReduceScatter,
          .dtype = Dtype::kBfloat16,
          .op = Op::kMax,
          .codec = {.id = CodecId::kTopk, .k = 64},
          .root = 1000,
          .plan = 3017,
          .count = 123456789012ULL};
}

TEST(Signature, SurvivesPacking) {
  const Signature there = unpack(pack(sample()));
  EXPECT_EQ(there.sequence, sample().sequence);
  EXPECT_EQ(there.collective, sample().collective);
  EXPECT_EQ(there.dtype, sample().dtype);
  EXPECT_EQ(there.op, sample().op);
  EXPECT_EQ(there.codec, sample().codec);
  EXPECT_EQ(there.root, sample().root);
  EXPECT_EQ(there.plan, sample().plan);
  EXPECT_EQ(there.count, sample().count);
}

TEST(Signature, HoldsEveryCodecWithEveryOption) {
  for (const CodecInfo& codec : codecs()) {
    size_t n_specs = 1;
    for (const CodecOption& option : codec.options) n_specs *= option.allowed.size();
    for (size_t number = 0; number < n_specs; ++number) {
      Signature s = sample();
      s.codec = spec_of(codec.id, static_cast<uint16_t>(number));
      EXPECT_EQ(option_number(s.codec), number) << to_string(s.codec);
      EXPECT_EQ(unpack(pack(s)).codec, s.codec) << to_string(s.codec);
      EXPECT_EQ(unpack(pack(s)).root, s.root) << to_string(s.codec);
    }
  }
}

TEST(Signature, EveryFieldChangesTheEnvelope) {
  const Envelope base = pack(sample());
  const auto differs = [&](auto change) {
    Signature s = sample();
    change(s);
    return !(pack(s) == base);
  };
  EXPECT_TRUE(differs([](Signature& s) { s.sequence++; }));
  EXPECT_TRUE(differs([](Signature& s) { s.collective = Collective::kAllReduce; }));
  EXPECT_TRUE(differs([](Signature& s) { s.dtype = Dtype::kFloat32; }));
  EXPECT_TRUE(differs([](Signature& s) { s.op = Op::kSum; }));
  EXPECT_TRUE(differs([](Signature& s) { s.codec.id = CodecId::kQ8; }));
  EXPECT_TRUE(differs([](Signature& s) { s.codec.k = 32; }));
  EXPECT_TRUE(differs([](Signature& s) { s.root = 999; }));
  EXPECT_TRUE(differs([](Signature& s) { s.plan++; }));
  EXPECT_TRUE(differs([](Signature& s) { s.count++; }));
}

TEST(Signature, TheMismatchErrorSaysWhoCalledWhat) {
  Signature mine = sample();
  mine.collective = Collective::kBarrier;
  const Error e = mismatch_error(mine, 0, sample(), 3);
  EXPECT_EQ(e.code, Code::kMismatch);
  EXPECT_EQ(e.rank, 3);
  EXPECT_NE(e.message.find("rank 0 called barrier #70001"), std::string::npos) << e.message;
  EXPECT_NE(e.message.find("rank 3 called reduce_scatter #70001 (bf16, max, 123456789012 elements"),
            std::string::npos)
      << e.message;
}

}  // namespace
}  // namespace tern
