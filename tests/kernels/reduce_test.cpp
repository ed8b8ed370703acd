#include "kernels/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/scalar.h"
#include "tests/kernels/samples.h"
#include "tests/kernels/simd_target.h"

namespace tern {
namespace {

std::string describe(Dtype dtype, Op op, size_t n_srcs, size_t n) {
  return fmt::format("{} {} n_srcs={} n={}", name(dtype), name(op), n_srcs, n);
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(test::same_element(got[i], want[i])) << what << " element " << i;
  }
}

class ReduceOnEveryTarget : public test::OnSimdTarget {};
TERN_ON_EVERY_SIMD_TARGET(ReduceOnEveryTarget);

/// Several sources, offset by `skew` elements so that no vector is aligned.
template <class T>
struct Sources {
  Sources(size_t n_srcs, size_t n, size_t skew) {
    for (size_t s = 0; s < n_srcs; ++s) {
      buffers.push_back(test::mixed_elements<T>(n + skew, 17 * s + n));
      pointers.push_back(buffers.back().data() + skew);
    }
  }
  std::vector<std::vector<T>> buffers;
  std::vector<const void*> pointers;
};

TEST_P(ReduceOnEveryTarget, ReducesLikeTheScalarReferenceForEveryDtypeOpAndCount) {
  for (const DtypeInfo& dtype : kDtypes) {
    for (size_t op_idx = 0; op_idx < kOpNames.size(); ++op_idx) {
      const auto op = static_cast<Op>(op_idx);
      for (const size_t n_srcs : {1, 2, 3, 8, 19}) {
        for (const size_t n : {0, 1, 7, 64, 129, 1000}) {
          with_type(dtype.dtype, [&]<class T>(std::type_identity<T>) {
            const Sources<T> srcs(n_srcs, n, n % 3);
            std::vector<T> got(n), also(n), want(n);
            void* const got_dsts[] = {got.data(), also.data()};
            void* const want_dst = want.data();
            scalar::reduce_to_many({dtype.dtype, op, {&want_dst, 1}, srcs.pointers, n, {}});
            reduce_to_many({dtype.dtype, op, got_dsts, srcs.pointers, n, {.stream = n_srcs == 3}});
            expect_same(got, want, describe(dtype.dtype, op, n_srcs, n));
            expect_same(also, want, describe(dtype.dtype, op, n_srcs, n));
          });
        }
      }
    }
  }
}

TEST_P(ReduceOnEveryTarget, MayWriteOverAnyOfItsSources) {
  for (const size_t n : {5, 300}) {
    for (size_t over = 0; over < 3; ++over) {
      for (const bool stream : {false, true}) {
        Sources<float> srcs(3, n, 1);
        std::vector<float> want(n);
        void* const want_dst = want.data();
        scalar::reduce_to_many({Dtype::kFloat32, Op::kSum, {&want_dst, 1}, srcs.pointers, n, {}});
        reduce(Dtype::kFloat32, Op::kSum, srcs.buffers[over].data() + 1,
               {srcs.pointers, n, {.stream = stream}});
        const std::vector<float> got(srcs.buffers[over].begin() + 1, srcs.buffers[over].end());
        expect_same(got, want, fmt::format("over source {} n={}", over, n));
      }
    }
  }
}

TEST_P(ReduceOnEveryTarget, WritesNothingOutsideItsDestination) {
  for (size_t n = 0; n < 200; n += 7) {
    const std::vector<float> ones(n, 1.0F);
    std::vector<float> out(n + 2, 7.0F);
    const void* const srcs[] = {ones.data(), ones.data()};
    reduce(Dtype::kFloat32, Op::kSum, out.data() + 1, {srcs, n, {.stream = n % 2 == 0}});
    EXPECT_EQ(out.front(), 7.0F);
    EXPECT_EQ(out.back(), 7.0F);
    EXPECT_THAT(std::span(out).subspan(1, n), testing::Each(2.0F));
  }
}

TEST_P(ReduceOnEveryTarget, DividesLikeTheScalarReferenceForAnAverage) {
  for (const DtypeInfo& dtype : kDtypes) {
    for (const int n_ranks : {1, 2, 3, 8, 17}) {
      with_type(dtype.dtype, [&]<class T>(std::type_identity<T>) {
        auto got = test::mixed_elements<T>(301, 5);
        auto want = got;
        average(dtype.dtype, got.data(), n_ranks, got.size());
        scalar::average(dtype.dtype, want.data(), n_ranks, want.size());
        expect_same(got, want, describe(dtype.dtype, Op::kAvg, static_cast<size_t>(n_ranks), got.size()));
      });
    }
  }
}

TEST_P(ReduceOnEveryTarget, ScalesLikeTheScalarReference) {
  for (const DtypeInfo& dtype : kDtypes) {
    for (const double factor : {0.5, -3.0, 7.0}) {
      with_type(dtype.dtype, [&]<class T>(std::type_identity<T>) {
        const auto in = test::mixed_elements<T>(301, 5);
        std::vector<T> got(in.size()), want(in.size());
        scale({dtype.dtype, in.data(), got.data(), factor, in.size()});
        scalar::scale({dtype.dtype, in.data(), want.data(), factor, in.size()});
        expect_same(got, want, fmt::format("{} times {}", dtype.name, factor));
      });
    }
  }
}

TEST(Reduce, AddsStrictlyInTheOrderOfTheSources) {
  const float big = 1e8F, one = 1.0F, minus_big = -1e8F;
  float out = 0;
  const void* const lost[] = {&one, &big, &minus_big};
  reduce(Dtype::kFloat32, Op::kSum, &out, {lost, 1});
  EXPECT_EQ(out, 0.0F);
  const void* const kept[] = {&big, &minus_big, &one};
  reduce(Dtype::kFloat32, Op::kSum, &out, {kept, 1});
  EXPECT_EQ(out, 1.0F);
}

TEST(Reduce, RoundsSixteenBitFloatsOnceAfterAllSources) {
  // 256 + 1 and 257 + 1 each round back down in bf16; in fp32 the sum 258 is exact.
  const Bfloat16 sources[] = {to_bfloat16(256), to_bfloat16(1), to_bfloat16(1)};
  const void* const srcs[] = {&sources[0], &sources[1], &sources[2]};
  Bfloat16 out{};
  reduce(Dtype::kBfloat16, Op::kSum, &out, {srcs, 1});
  EXPECT_EQ(to_float(out), 258.0F);
}

TEST(Reduce, SaturatesEightBitFloatsAndKeepsTheirNans) {
  const auto sum = []<class T>(T a, T b) {
    const void* const srcs[] = {&a, &b};
    T out{};
    reduce(dtype_of<T>(), Op::kSum, &out, {srcs, 1});
    return to_float(out);
  };
  EXPECT_EQ(sum(to_float8<Float8E4m3>(300), to_float8<Float8E4m3>(300)), 448.0F);
  EXPECT_EQ(sum(to_float8<Float8E5m2>(-50000), to_float8<Float8E5m2>(-50000)), -57344.0F);
  EXPECT_TRUE(std::isnan(sum(to_float8<Float8E4m3>(NAN), to_float8<Float8E4m3>(1))));
}

TEST(Reduce, WrapsIntegers) {
  const int32_t a = std::numeric_limits<int32_t>::max(), b = 1;
  const void* const srcs[] = {&a, &b};
  int32_t out = 0;
  reduce(Dtype::kInt32, Op::kSum, &out, {srcs, 1});
  EXPECT_EQ(out, std::numeric_limits<int32_t>::min());
}

TEST(Reduce, MinAndMaxOfANanAreNanWhereverItStands) {
  for (const Op op : {Op::kMin, Op::kMax}) {
    for (size_t nan_at = 0; nan_at < 3; ++nan_at) {
      std::vector<std::vector<float>> buffers(3, std::vector<float>(100, 1.0F));
      std::fill(buffers[nan_at].begin(), buffers[nan_at].end(), NAN);
      const void* const srcs[] = {buffers[0].data(), buffers[1].data(), buffers[2].data()};
      std::vector<float> out(100);
      reduce(Dtype::kFloat32, op, out.data(), {srcs, out.size()});
      EXPECT_THAT(out, testing::Each(testing::IsNan())) << name(op) << " NaN in source " << nan_at;
    }
  }
}

}  // namespace
}  // namespace tern
