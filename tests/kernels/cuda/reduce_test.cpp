// Reductions on the GPU give what the scalar reference gives, for every dtype and operator.
#include <gtest/gtest.h>

#include "kernels/cuda/reduce_body.cuh"
#include "kernels/scalar.h"
#include "tests/kernels/cuda/device.h"
#include "tests/kernels/samples.h"

namespace tern::cuda {
namespace {

class Reduction : public test::OnEveryMachine {};
TERN_ON_EVERY_MACHINE(Reduction);

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(tern::test::same_element(got[i], want[i])) << what << " element " << i;
}

template <class T>
void expect_reduces(const test::Machine& machine, Op op, uint32_t n_srcs, size_t n) {
  const size_t skip = n % 3;
  std::vector<std::vector<T>> srcs;
  for (size_t s = 0; s < n_srcs; ++s) srcs.push_back(tern::test::mixed_elements<T>(n + skip, 17 * s + n));
  std::vector<T> got(n + skip), want(n + skip);
  test::Device device(machine);
  Reduce args = {.dtype = dtype_of<T>(), .op = op, .n_srcs = n_srcs, .n = n};
  args.dst = device.buffer("dst", got, skip);
  std::vector<const void*> pointers;
  for (size_t s = 0; s < n_srcs; ++s) {
    args.srcs[s] = device.input("source", srcs[s], skip);
    pointers.push_back(srcs[s].data() + skip);
  }
  const Status status = device.run(args, Typed<T, Reduce>{args});
  ASSERT_TRUE(status.ok()) << status.error().message;
  void* const dst = want.data() + skip;
  scalar::reduce_to_many({args.dtype, op, {&dst, 1}, pointers, n, {}});
  expect_same(got, want, fmt::format("{} {} n_srcs={} n={}", name(args.dtype), name(op), n_srcs, n));
}

TEST_P(Reduction, CombinesSourcesInOrderLikeTheScalarReference) {
  for (const DtypeInfo& dtype : kDtypes) {
    for (size_t op_idx = 0; op_idx < kOpNames.size(); ++op_idx) {
      for (const uint32_t n_srcs : {1U, 2U, 3U, 19U}) {
        for (const size_t n : {0, 1, 7, 64, 129, 1500}) {
          with_type(dtype.dtype, [&]<class T>(std::type_identity<T>) {
            expect_reduces<T>(GetParam(), static_cast<Op>(op_idx), n_srcs, n);
          });
        }
      }
    }
  }
}

TEST_P(Reduction, MayWriteOverAnyOfItsSources) {
  for (size_t over = 0; over < 3; ++over) {
    std::vector<std::vector<float>> srcs;
    for (size_t s = 0; s < 3; ++s) srcs.push_back(tern::test::mixed_elements<float>(1000, s));
    std::vector<float> want(1000);
    const void* const pointers[] = {srcs[0].data(), srcs[1].data(), srcs[2].data()};
    void* const dst = want.data();
    scalar::reduce_to_many({Dtype::kFloat32, Op::kSum, {&dst, 1}, pointers, 1000, {}});
    test::Device device(GetParam());
    Reduce args = {.n_srcs = 3, .n = 1000};
    for (size_t s = 0; s < 3; ++s) args.srcs[s] = device.buffer("source", srcs[s]);
    args.dst = const_cast<void*>(args.srcs[over]);
    const Status status = device.run(args, Typed<float, Reduce>{args});
    ASSERT_TRUE(status.ok()) << status.error().message;
    expect_same(srcs[over], want, fmt::format("over source {}", over));
  }
}

TEST_P(Reduction, DividesLikeTheScalarReferenceForAnAverage) {
  for (const DtypeInfo& dtype : kDtypes) {
    for (const int n_ranks : {1, 2, 3, 17}) {
      with_type(dtype.dtype, [&]<class T>(std::type_identity<T>) {
        auto got = tern::test::mixed_elements<T>(301, 5);
        auto want = got;
        scalar::average(dtype.dtype, want.data(), n_ranks, want.size());
        test::Device device(GetParam());
        const Average args = {dtype.dtype, device.buffer("data", got), n_ranks, got.size()};
        const Status status = device.run(args, Typed<T, Average>{args});
        ASSERT_TRUE(status.ok()) << status.error().message;
        expect_same(got, want, fmt::format("{} n_ranks={}", dtype.name, n_ranks));
      });
    }
  }
}

TEST_P(Reduction, ScalesLikeTheScalarReference) {
  for (const DtypeInfo& dtype : kDtypes) {
    for (const double factor : {0.5, -3.0, 7.0}) {
      with_type(dtype.dtype, [&]<class T>(std::type_identity<T>) {
        const auto in = tern::test::mixed_elements<T>(301, 5);
        std::vector<T> got(in.size()), want(in.size());
        scalar::scale({dtype.dtype, in.data(), want.data(), factor, in.size()});
        test::Device device(GetParam());
        const Scale args = {dtype.dtype, device.input("in", in), device.buffer("out", got), factor,
                            in.size()};
        const Status status = device.run(args, Typed<T, Scale>{args});
        ASSERT_TRUE(status.ok()) << status.error().message;
        expect_same(got, want, fmt::format("{} times {}", dtype.name, factor));
      });
    }
  }
}

TEST(ReduceLaunch, RefusesMoreSourcesThanItsArgumentsHold) {
  EXPECT_STREQ((Reduce{.n_srcs = 65}).wrong(), "there must be 1 to 64 sources");
  EXPECT_STREQ((Reduce{.n_srcs = 0}).wrong(), "there must be 1 to 64 sources");
  EXPECT_EQ((Reduce{.n_srcs = 64}).wrong(), nullptr);
}

}  // namespace
}  // namespace tern::cuda
