// Every codec inside reduce_scatter and all_reduce: identical bytes on all ranks, bounded error, nothing lost
// with a residual.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <random>

#include "kernels/arithmetic.h"
#include "runtime/base/philox.h"
#include "runtime/codec/codec.h"
#include "runtime/plan/registry.h"
#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

std::vector<float> gradient(int rank, size_t n, uint32_t step = 0) {
  std::mt19937 random(1000 * step + static_cast<uint32_t>(rank));
  std::normal_distribution<float> normal(0, 1e-3F);
  std::vector<float> g(n);
  for (float& x : g) x = normal(random);
  return g;
}

std::vector<double> exact_sum(int n_ranks, size_t n, uint32_t step = 0) {
  std::vector<double> sum(n);
  for (int r = 0; r < n_ranks; ++r) {
    const auto g = gradient(r, n, step);
    for (size_t i = 0; i < n; ++i) sum[i] += static_cast<double>(g[i]);
  }
  return sum;
}

// |estimate - sum|^2 / |sum|^2
double vnmse(std::span<const float> estimate, std::span<const double> sum) {
  double error = 0;
  double energy = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    const double e = static_cast<double>(estimate[i]) - sum[i];
    error += e * e;
    energy += sum[i] * sum[i];
  }
  return energy > 0 ? error / energy : error;
}

// Generous against CODECS' figures for one quantisation per level; a second quantisation per hop would break
// them.
double most_error(CodecId codec) {
  if (info(codec).residual == ResidualUse::kMandatory) return 1.0;
  if (codec == CodecId::kQ4h) return 0.04;
  const double error = info(codec).max_error({.id = codec}, 1);  // of absmax, which is 2 to 3 deviations
  return std::max(2e-4, 8 * error * error);
}

struct Shape {
  int n_ranks;
  size_t n;
  size_t segment;
};
constexpr Shape kShapes[] = {{1, 1000, 0},   {2, 1, 0},     {2, 4097, 0},     {3, 127, 0},
                             {3, 100003, 0}, {4, 65536, 0}, {4, 100003, 512}, {5, 40000, 16384},
                             {8, 33333, 0},  {17, 20011, 0}};

template <class Visit>
void each_lossy(const Visit& visit) {
  for (const CodecInfo& codec : codecs()) {
    if (codec.id == CodecId::kNone) continue;
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(fmt::format("{} p={} n={} segment={}", codec.name, shape.n_ranks, shape.n, shape.segment));
      visit(codec, shape);
    }
  }
}

TEST(CodecCollectives, AllReduceGivesAllRanksTheSameBytesWithinTheCodecsError) {
  each_lossy([](const CodecInfo& codec, const Shape& shape) {
    Config config = quick_config();
    config.segment_bytes = shape.segment;
    std::vector<std::vector<float>> outs(static_cast<size_t>(shape.n_ranks));
    on_ranks(shape.n_ranks, config, [&](Communicator& comm) {
      const auto in = gradient(comm.rank(), shape.n);
      std::vector<float> out(shape.n);
      std::vector<float> residual(shape.n);
      const Status status =
          comm.all_reduce(std::span<const float>(in), std::span<float>(out), Op::kSum,
                          {.codec = CodecSpec{.id = codec.id}, .residual = residual.data()});
      ASSERT_TRUE(status.ok()) << status.error().to_string();
      outs[static_cast<size_t>(comm.rank())] = std::move(out);
    });
    const auto sum = exact_sum(shape.n_ranks, shape.n);
    for (const auto& out : outs) {
      ASSERT_EQ(out.size(), shape.n);
      EXPECT_EQ(std::memcmp(out.data(), outs[0].data(), shape.n * sizeof(float)), 0);
    }
    EXPECT_LE(vnmse(outs[0], sum), most_error(codec.id));
  });
}

TEST(CodecCollectives, ReduceScatterGivesEachOwnerItsSumWithinTheCodecsErrorInPlaceToo) {
  each_lossy([](const CodecInfo& codec, const Shape& shape) {
    for (const bool in_place : {false, true}) {
      const size_t whole = shape.n * static_cast<size_t>(shape.n_ranks);
      const auto sum = exact_sum(shape.n_ranks, whole);
      Config config = quick_config();
      config.segment_bytes = shape.segment;
      on_ranks(shape.n_ranks, config, [&](Communicator& comm) {
        auto in = gradient(comm.rank(), whole);
        std::vector<float> apart(shape.n);
        std::vector<float> residual(whole);
        const size_t first = shape.n * static_cast<size_t>(comm.rank());
        const std::span<float> out =
            in_place ? std::span<float>(in).subspan(first, shape.n) : std::span<float>(apart);
        const Status status =
            comm.reduce_scatter(std::span<const float>(in), out, Op::kSum,
                                {.codec = CodecSpec{.id = codec.id}, .residual = residual.data()});
        ASSERT_TRUE(status.ok()) << status.error().to_string();
        EXPECT_LE(vnmse(out, std::span<const double>(sum).subspan(first, shape.n)), most_error(codec.id));
      });
    }
  });
}

TEST(CodecCollectives, WhatIsNotSentStaysInTheResidual) {
  constexpr int kRanks = 3;
  constexpr size_t kN = 30011;
  constexpr uint32_t kSteps = 20;
  for (const CodecInfo& codec : codecs()) {
    if (codec.residual == ResidualUse::kNone) continue;
    SCOPED_TRACE(codec.name);
    std::vector<double> balance(kN);  // sum of gradients - sum of what arrived - residuals
    std::mutex mutex;
    on_ranks(kRanks, quick_config(), [&](Communicator& comm) {
      std::vector<float> residual(kN);
      std::vector<double> mine(kN);
      for (uint32_t step = 0; step < kSteps; ++step) {
        const auto in = gradient(comm.rank(), kN, step);
        std::vector<float> out(kN);
        const Status status =
            comm.all_reduce(std::span<const float>(in), std::span<float>(out), Op::kSum,
                            {.codec = CodecSpec{.id = codec.id}, .residual = residual.data(), .step = step});
        ASSERT_TRUE(status.ok()) << status.error().to_string();
        for (size_t i = 0; i < kN; ++i) {
          mine[i] += static_cast<double>(in[i]) - (comm.rank() == 0 ? static_cast<double>(out[i]) : 0.0);
        }
      }
      const std::lock_guard lock(mutex);
      for (size_t i = 0; i < kN; ++i) balance[i] += mine[i] - static_cast<double>(residual[i]);
    });
    for (size_t i = 0; i < kN; ++i) ASSERT_NEAR(balance[i], 0, 2e-6) << codec.name << " element " << i;
  }
}

/// One step: reduce_scatter, or all_reduce by one of the algorithms that encode, in turns.
Status sum_encoded(Communicator& comm, std::span<const float> in, std::span<float> out, CallOptions call) {
  std::vector<std::string_view> choices = {""};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.can_encode() &&
        algorithm.supports({.collective = Collective::kAllReduce, .n_ranks = comm.size()}))
      choices.push_back(algorithm.name);
  }
  call.algorithm = choices[call.step % choices.size()];
  std::ranges::fill(out, 0.0F);
  if (call.algorithm.empty()) {
    const size_t n_share = in.size() / static_cast<size_t>(comm.size());
    return comm.reduce_scatter(in, out.subspan(n_share * static_cast<size_t>(comm.rank()), n_share), Op::kSum,
                               call);
  }
  TERN_TRY(comm.all_reduce(in, out, Op::kSum, call));
  if (comm.rank() != 0) std::ranges::fill(out, 0.0F);  // the ranks' outputs together are the sum once
  return {};
}

/// Of one rank's steps with one codec: the sum of what it was given less its part of what arrived and the
/// residual. The gradients are multiples of 2^-6: no sum of them, of codes times scales and of residuals is
/// rounded.
std::vector<double> unsent(Communicator& comm, const CodecSpec& spec, size_t n, uint32_t n_steps) {
  Philox random(7, static_cast<uint64_t>(comm.rank()));
  std::vector<float> in(n), out(n), residual(n);
  std::vector<double> balance(n);
  for (uint32_t step = 0; step < n_steps; ++step) {
    for (float& x : in) x = static_cast<float>(static_cast<int>(random.below(129)) - 64) * 0x1p-6F;
    const Status status =
        sum_encoded(comm, in, out, {.codec = spec, .residual = residual.data(), .step = step});
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    for (size_t i = 0; i < n; ++i) balance[i] += static_cast<double>(in[i]) - static_cast<double>(out[i]);
  }
  for (size_t i = 0; i < n; ++i) balance[i] -= static_cast<double>(residual[i]);
  return balance;
}

TEST(CodecCollectives, AThousandStepsLoseNothingToTheBit) {
  constexpr size_t kN = 600;
  std::mutex mutex;
  std::vector<std::vector<double>> balances(codecs().size(), std::vector<double>(kN));
  on_ranks(3, quick_config(), [&](Communicator& comm) {
    for (const CodecInfo& codec : codecs()) {
      if (codec.residual == ResidualUse::kNone) continue;
      const auto mine = unsent(comm, {.id = codec.id}, kN, 1000);
      const std::lock_guard lock(mutex);
      auto& balance = balances[static_cast<size_t>(codec.id)];
      for (size_t i = 0; i < kN; ++i) balance[i] += mine[i];
    }
  });
  for (const CodecInfo& codec : codecs()) {
    const auto& balance = balances[static_cast<size_t>(codec.id)];
    for (size_t i = 0; i < kN; ++i) ASSERT_EQ(balance[i], 0) << codec.name << " element " << i;
  }
}

TEST(CodecCollectives, AveragesAreSumsDividedOnceWithEveryAlgorithmThatEncodes) {
  constexpr size_t kN = 5000;
  on_ranks(4, quick_config(), [&](Communicator& comm) {
    const auto in = gradient(comm.rank(), kN);
    auto average = exact_sum(4, kN);
    for (double& x : average) x /= 4;
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.can_encode() ||
          !algorithm.supports({.collective = Collective::kAllReduce, .n_ranks = 4}))
        continue;
      std::vector<float> out(kN);
      const Status status =
          comm.all_reduce(std::span<const float>(in), std::span<float>(out), Op::kAvg,
                          {.codec = CodecSpec{.id = CodecId::kQ8}, .algorithm = algorithm.name});
      ASSERT_TRUE(status.ok()) << algorithm.name << ": " << status.error().to_string();
      EXPECT_LE(vnmse(out, average), most_error(CodecId::kQ8)) << algorithm.name;
    }
    std::vector<float> share(kN / 4);
    ASSERT_TRUE(comm.reduce_scatter(std::span<const float>(in), std::span<float>(share), Op::kAvg,
                                    {.codec = CodecSpec{.id = CodecId::kQ8}})
                    .ok());
    const size_t first = share.size() * static_cast<size_t>(comm.rank());
    EXPECT_LE(vnmse(share, std::span<const double>(average).subspan(first, share.size())),
              most_error(CodecId::kQ8));
  });
}

template <class T>
void check_short_floats(const CodecSpec& spec, int n_ranks) {
  constexpr size_t kN = 5003;
  const auto narrowed = [](const std::vector<float>& x) {
    std::vector<T> out(x.size());
    std::transform(x.begin(), x.end(), out.begin(), narrow<T>);
    return out;
  };
  std::vector<double> sum(kN);
  for (int r = 0; r < n_ranks; ++r) {
    const auto g = narrowed(gradient(r, kN));
    for (size_t i = 0; i < kN; ++i) sum[i] += static_cast<double>(widen(g[i]));
  }
  std::vector<std::vector<T>> outs(static_cast<size_t>(n_ranks));
  on_ranks(n_ranks, quick_config(), [&](Communicator& comm) {
    auto x = narrowed(gradient(comm.rank(), kN));
    std::vector<float> residual(kN);
    const Status status = comm.all_reduce(std::span<const T>(x), std::span<T>(x), Op::kSum,
                                          {.codec = spec, .residual = residual.data()});
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    outs[static_cast<size_t>(comm.rank())] = std::move(x);
  });
  std::vector<float> result(kN);
  std::transform(outs[0].begin(), outs[0].end(), result.begin(), widen<T>);
  EXPECT_LE(vnmse(result, sum), most_error(spec.id) + 0x1p-14);
  for (const auto& out : outs) EXPECT_EQ(std::memcmp(out.data(), outs[0].data(), kN * sizeof(T)), 0);
}

TEST(CodecCollectives, ShortFloatsAreSummedInFp32AndAreTheSameBytesOnAllRanks) {
  for (const CodecInfo& codec : codecs()) {
    if (codec.id == CodecId::kNone) continue;
    for (const int n_ranks : {1, 2, 5}) {
      SCOPED_TRACE(fmt::format("{} p={}", codec.name, n_ranks));
      check_short_floats<Bfloat16>({.id = codec.id}, n_ranks);
      check_short_floats<Float16>({.id = codec.id}, n_ranks);
    }
  }
}

TEST(CodecCollectives, NothingToReduceNeedsNoResidual) {
  on_ranks(2, quick_config(), [&](Communicator& comm) {
    EXPECT_TRUE(comm.all_reduce(std::span<const float>(), std::span<float>(), Op::kSum,
                                {.codec = CodecSpec{.id = CodecId::kTopk}})
                    .ok());
  });
}

TEST(CodecCollectives, BytesOnTheWireAreWithinTwoPercentOfTheFormat) {
  for (const CodecInfo& codec : codecs()) {
    if (codec.id == CodecId::kNone) continue;
    on_ranks(4, quick_config(), [&](Communicator& comm) {
      const size_t n = size_t{1} << 20;
      const std::vector<float> in = gradient(comm.rank(), n);
      std::vector<float> out(n / 4);
      std::vector<float> residual(n);
      const CodecSpec spec{.id = codec.id};
      ASSERT_TRUE(comm.reduce_scatter(std::span<const float>(in), std::span<float>(out), Op::kSum,
                                      {.codec = spec, .residual = residual.data()})
                      .ok());
      const double formula = static_cast<double>(n) * 3 / 4 * codec.bits_per_element(spec, sizeof(float)) / 8;
      EXPECT_NEAR(static_cast<double>(comm.last_report().bytes_on_wire) / formula, 1, 0.02) << codec.name;
    });
  }
}

TEST(CodecCollectives, ANonFiniteElementReachesAllRanksAndIsReported) {
  std::vector<std::vector<float>> outs(3);
  std::vector<char> flags(3);
  on_ranks(3, quick_config(), [&](Communicator& comm) {
    std::vector<float> in = gradient(comm.rank(), 3000);
    if (comm.rank() == 1) in[700] = std::numeric_limits<float>::infinity();
    std::vector<float> out(in.size());
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(in), std::span<float>(out), Op::kSum,
                                {.codec = CodecSpec{.id = CodecId::kQ8}})
                    .ok());
    outs[static_cast<size_t>(comm.rank())] = out;
    flags[static_cast<size_t>(comm.rank())] = comm.last_report().non_finite ? 1 : 0;
  });
  for (const auto& out : outs) EXPECT_TRUE(std::isnan(out[700]));
  EXPECT_TRUE(std::isfinite(outs[0][2999]));
  EXPECT_EQ(flags[1] + flags[0] + flags[2] > 0, true);
}

TEST(CodecCollectives, WhatACodecCannotDoIsRefusedBeforeAnythingIsSent) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<float> x(100);
    std::vector<double> room(100);
    for (const DtypeInfo& row : kDtypes) {
      if (is_encodable(row.dtype)) continue;
      const Status refused = comm.all_reduce({room.data(), 100, row.dtype}, {room.data(), 100, row.dtype},
                                             Op::kSum, {.codec = CodecSpec{.id = CodecId::kQ8}});
      ASSERT_FALSE(refused.ok()) << row.name;
      EXPECT_EQ(refused.error().code, Code::kUnsupported) << row.name;
      EXPECT_NE(refused.error().message.find("fp32, fp16, bf16"), std::string::npos)
          << refused.error().message;
      EXPECT_NE(refused.error().message.find("sum of " + std::string(row.name)), std::string::npos)
          << refused.error().message;
    }
    const Status most = comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kMax,
                                        {.codec = CodecSpec{.id = CodecId::kQ8}});
    ASSERT_FALSE(most.ok());
    EXPECT_EQ(most.error().code, Code::kUnsupported);
    const Status biased = comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum,
                                          {.codec = CodecSpec{.id = CodecId::kTopk}});
    ASSERT_FALSE(biased.ok());
    EXPECT_EQ(biased.error().code, Code::kInvalidArgument);
    EXPECT_NE(biased.error().message.find("residual"), std::string::npos);
    EXPECT_TRUE(comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum).ok());
  });
}

}  // namespace
}  // namespace tern
