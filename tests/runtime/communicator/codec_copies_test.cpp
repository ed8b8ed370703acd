// Codecs inside collectives that only move elements: all ranks get the same bytes, each within the codec's
// error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/codec/codec.h"
#include "runtime/plan/registry.h"
#include "tests/ranks.h"

namespace tern {
namespace {

using ::testing::HasSubstr;
using testing::on_ranks;
using testing::quick_config;

/// Element i of what `from` has for `to` (the same for all, but in an all_to_all). Within [-1, 1].
float value(int from, int to, size_t i) {
  return std::sin(static_cast<float>(from * 7 + to * 13) + 0.37F * static_cast<float>(i));
}

struct Case {
  Collective collective;
  std::string_view algorithm;
  CodecSpec spec;
  size_t n;  ///< elements that a rank has for another
};

Operation make(const Case& c, std::span<float> in, std::span<float> out) {
  const ConstView from{in.data(), in.size(), Dtype::kFloat32};
  const View to{out.data(), out.size(), Dtype::kFloat32};
  const CallOptions options{.codec = c.spec, .algorithm = c.algorithm};
  switch (c.collective) {
    case Collective::kAllGather:
      return ops::all_gather(from, to, options);
    case Collective::kAllToAll:
      return ops::all_to_all(from, to, options);
    default:
      return ops::broadcast(from, to, 1, options);
  }
}

void check(Communicator& comm, const Case& c) {
  const auto p = static_cast<size_t>(comm.size());
  const bool to_each = c.collective == Collective::kAllToAll;
  const size_t n_in = to_each ? p * c.n : c.n;
  const size_t n_out = c.collective == Collective::kBroadcast ? c.n : p * c.n;
  std::vector<float> in(n_in), out(n_out, -9);
  for (size_t i = 0; i < n_in; ++i)
    in[i] = value(comm.rank(), to_each ? static_cast<int>(i / c.n) : 0, i % std::max<size_t>(c.n, 1));
  const Status status = comm.run(make(c, in, out));
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  const double most = info(c.spec.id).max_error(c.spec, 1);
  for (size_t i = 0; i < n_out; ++i) {
    const int from = c.collective == Collective::kBroadcast ? 1 : static_cast<int>(i / c.n);
    ASSERT_NEAR(out[i], value(from, to_each ? comm.rank() : 0, i % c.n), most) << i;
  }
  if (to_each) return;
  std::vector<float> least(n_out), largest(n_out);
  ASSERT_TRUE(comm.all_reduce(std::span<const float>(out), std::span<float>(least), Op::kMin).ok());
  ASSERT_TRUE(comm.all_reduce(std::span<const float>(out), std::span<float>(largest), Op::kMax).ok());
  EXPECT_EQ(least, largest) << "ranks have different results";
}

TEST(CodecCopies, GiveEveryRankTheSameElementsWithinTheCodecsError) {
  for (const int p : {2, 3, 5}) {
    on_ranks(p, quick_config(), [&](Communicator& comm) {
      for (const Collective collective :
           {Collective::kAllGather, Collective::kBroadcast, Collective::kAllToAll}) {
        for (const Algorithm& algorithm : algorithms()) {
          if (!algorithm.can_encode() ||
              !algorithm.supports({.collective = collective, .n_ranks = p, .root = 1, .encoded = true}))
            continue;
          for (const CodecInfo& codec : codecs()) {
            if (codec.id == CodecId::kNone || codec.residual == ResidualUse::kMandatory) continue;
            for (const size_t n : {0, 1, 127, 5000}) {
              SCOPED_TRACE(fmt::format("{} by {}, {}, p = {}, n = {}", name(collective), algorithm.name,
                                       codec.name, p, n));
              check(comm, {collective, algorithm.name, {.id = codec.id}, n});
            }
          }
        }
      }
    });
  }
}

TEST(CodecCopies, MoveFewerBytesAndOnlyWhenTheCallSaysSo) {
  Config config = quick_config();
  config.codec = "q8";
  on_ranks(2, config, [](Communicator& comm) {
    std::vector<float> in(100000, 1), out(200000);
    ASSERT_TRUE(comm.all_gather(std::span<const float>(in), std::span<float>(out)).ok());
    EXPECT_EQ(comm.last_report().bytes_on_wire, in.size() * 4) << "TERN_CODEC is for sums";
    ASSERT_TRUE(comm.all_gather(std::span<const float>(in), std::span<float>(out),
                                {.codec = CodecSpec{.id = CodecId::kQ8}})
                    .ok());
    EXPECT_LT(comm.last_report().bytes_on_wire, in.size() * 4 / 3);
  });
}

TEST(CodecCopies, WithoutSenseAreRefusedBeforeAnythingIsSent) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<float> in(8), out(16), residual(8);
    std::vector<int> numbers(8), all_numbers(16);
    const std::span<const float> from(in);
    const std::span<float> to(out);
    const auto says = [](const Status& status) { return status.ok() ? "nothing" : status.error().message; };
    EXPECT_THAT(says(comm.all_gather(from, to, {.codec = CodecSpec{.id = CodecId::kTopk}})),
                HasSubstr("a biased codec needs a residual, which only sums can have"));
    EXPECT_THAT(says(comm.all_gather(from, to,
                                     {.codec = CodecSpec{.id = CodecId::kQ8}, .residual = residual.data()})),
                HasSubstr("it takes no residual"));
    EXPECT_THAT(says(comm.all_gather(std::span<const int>(numbers), std::span<int>(all_numbers),
                                     {.codec = CodecSpec{.id = CodecId::kQ8}})),
                HasSubstr("codec q8 encodes fp32, fp16, bf16, not int32"));
    EXPECT_THAT(says(comm.gather(from, to, 0, {.codec = CodecSpec{.id = CodecId::kQ8}})),
                HasSubstr("gather with codec q8: codecs apply to all_reduce, reduce_scatter, all_gather"));
    EXPECT_TRUE(comm.barrier().ok());
  });
}

}  // namespace
}  // namespace tern
