// Error feedback over many steps: what was sent and the residual are the sum of the gradients, to the bit.
#include <gtest/gtest.h>

#include "runtime/base/philox.h"
#include "tests/runtime/codec/encoded.h"

namespace tern {
namespace {

/// Multiples of 2^-6 up to 1, which every element type holds. Codes times scales are multiples of 2^-20 then,
/// and residuals stay below 16, so that no sum and no difference in fp32 is rounded.
std::vector<float> exact_gradient(size_t n, uint64_t seed) {
  Philox random(seed);
  std::vector<float> g(n);
  for (float& x : g) x = static_cast<float>(static_cast<int>(random.below(129)) - 64) * 0x1p-6F;
  return g;
}

struct Feedback {
  CodecSpec spec;
  std::vector<float> residual;
  std::vector<double> sent;
};

TEST(Residual, AfterAThousandStepsWhatWasSentAndTheResidualAreTheSumOfTheGradientsToTheBit) {
  constexpr size_t kN = kRunGrain + 100;
  constexpr uint32_t kSteps = 1000;
  std::vector<Feedback> feedbacks;
  for (const CodecSpec& spec : test::all_specs()) {
    if (!test::takes_residual(spec) || !check_residual(spec, true).ok()) continue;
    feedbacks.push_back({spec, std::vector<float>(kN), std::vector<double>(kN)});
  }
  std::vector<double> gradients(kN);
  std::vector<float> decoded(kN);
  for (uint32_t step = 0; step < kSteps; ++step) {
    const auto g = exact_gradient(kN, step);
    for (size_t i = 0; i < kN; ++i) gradients[i] += static_cast<double>(g[i]);
    const Dtype dtype = test::kEncodable[step % std::size(test::kEncodable)];
    for (Feedback& f : feedbacks) {
      const auto message =
          test::encode(f.spec, g, {.residual = &f.residual, .tag = {.step = step}, .dtype = dtype});
      test::decode_run(message, decoded, Decode::kSet);
      for (size_t i = 0; i < kN; ++i) f.sent[i] += static_cast<double>(decoded[i]);
    }
  }
  for (const Feedback& f : feedbacks) {
    EXPECT_GT(test::sum_of_squares(f.residual), 0) << to_string(f.spec) << " lost nothing";
    for (size_t i = 0; i < kN; ++i) {
      ASSERT_EQ(f.sent[i] + static_cast<double>(f.residual[i]), gradients[i])
          << to_string(f.spec) << " element " << i << ", residual " << f.residual[i];
    }
  }
}

}  // namespace
}  // namespace tern
