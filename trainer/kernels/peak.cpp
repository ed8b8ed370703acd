#include "trainer/kernels/peak.h"

#include <algorithm>
#include <vector>

#include "runtime/base/clock.h"
#include "trainer/kernels/gemm.h"

namespace tern::trainer {

double measure_peak_flops(Team& team, int n_tries) {
  constexpr int64_t kSide = 2048;
  const std::vector<float> factor(kSide * kSide, 0.5F);
  std::vector<float> result(kSide * kSide);
  const Rows<const float> square{factor.data(), kSide, kSide, kSide};
  const Product<float> product{.a = square, .b = square, .c = {result.data(), kSide, kSide, kSide}};
  multiply(team, product);  // code generation, page faults, clock ramp
  double best = 0;
  for (int i = 0; i < n_tries; ++i) {
    const auto start = Clock::now();
    multiply(team, product);
    best = std::max(best, 2.0 * kSide * kSide * kSide / seconds_since(start));
  }
  return best;
}

}  // namespace tern::trainer
