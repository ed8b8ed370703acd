// Conversions on the GPU give the bits of kernels/convert.h.
#include <gtest/gtest.h>

#include "kernels/cuda/convert_body.cuh"
#include "tests/kernels/cuda/device.h"
#include "tests/kernels/samples.h"

namespace tern::cuda {
namespace {

constexpr size_t kSizes[] = {0, 1, 7, 8, 9, 255, 2048, 2500};

class Convert : public test::OnEveryMachine {};
TERN_ON_EVERY_MACHINE(Convert);

/// Special values, plain ones and every bit pattern that `n` has room for.
std::vector<float> floats(size_t n) {
  std::vector<float> out = tern::test::mixed_elements<float>(n, n);
  Philox random(n);
  for (size_t i = 0; i < n; i += 2) out[i] = std::bit_cast<float>(random.next());
  return out;
}

template <class T>
void expect_narrows(const test::Machine& machine, size_t n, size_t skip) {
  const std::vector<float> in = floats(n + skip);
  std::vector<T> out(n + skip);
  std::vector<uint32_t> n_non_finite = {5};
  test::Device device(machine);
  const Status status = device.run(Narrow<T>{.in = device.input("in", in, skip),
                                             .out = device.buffer("out", out, skip),
                                             .n = n,
                                             .n_non_finite = device.buffer("n_non_finite", n_non_finite)});
  ASSERT_TRUE(status.ok()) << status.error().message;
  uint32_t want_non_finite = 5;
  for (size_t i = skip; i < n + skip; ++i) {
    const T want = narrow<T>(in[i]);
    ASSERT_EQ(out[i].bits, want.bits)
        << name(dtype_of<T>()) << " n=" << n << " skip=" << skip << " element " << i;
    want_non_finite += std::isfinite(to_float(want)) ? 0 : 1;
  }
  EXPECT_EQ(n_non_finite[0], want_non_finite) << name(dtype_of<T>()) << " n=" << n;
}

TEST_P(Convert, NarrowsToTheNearestAndCountsWhatIsNotFinite) {
  for (const size_t n : kSizes) {
    for (const size_t skip : {0, 1}) {
      expect_narrows<Bfloat16>(GetParam(), n, skip);
      expect_narrows<Float16>(GetParam(), n, skip);
    }
  }
}

template <class T>
void expect_widens(const test::Machine& machine, size_t n, size_t skip, bool accumulate) {
  std::vector<T> in(n + skip);
  for (size_t i = 0; i < in.size(); ++i) in[i].bits = static_cast<uint16_t>(i * 40503);  // of every exponent
  std::vector<float> out(n + skip, 1.5F);
  test::Device device(machine);
  const Status status = device.run(Widen<T>{.in = device.input("in", in, skip),
                                            .out = device.buffer("out", out, skip),
                                            .n = n,
                                            .accumulate = accumulate});
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (size_t i = skip; i < n + skip; ++i) {
    ASSERT_TRUE(tern::test::same_element(out[i], accumulate ? 1.5F + to_float(in[i]) : to_float(in[i])))
        << name(dtype_of<T>()) << " n=" << n << " accumulate=" << accumulate << " element " << i;
  }
}

TEST_P(Convert, WidensExactlyAndAdds) {
  for (const size_t n : kSizes) {
    for (const bool accumulate : {false, true}) {
      expect_widens<Bfloat16>(GetParam(), n, n % 2, accumulate);
      expect_widens<Float16>(GetParam(), n, n % 3, accumulate);
    }
  }
}

}  // namespace
}  // namespace tern::cuda
