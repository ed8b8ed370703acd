#include "kernels/low_rank.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/low_rank.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

// Plain loops over runs of a fixed width, which the compiler makes vectors of for each instruction set: the
// order of the sums is part of the result.
HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

constexpr size_t kLanes = 16;
constexpr size_t kTogether = 4;  // vectors of Q for each reading of a row of M

// out[k] = row . q[k], as kLanes sums that are added up in the end.
template <size_t kN>
void dots(const float* row, const float* q, size_t cols, float* out) {
  float sums[kN][kLanes] = {};
  size_t j = 0;
  for (; j + kLanes <= cols; j += kLanes)
    for (size_t k = 0; k < kN; ++k)
      for (size_t l = 0; l < kLanes; ++l) sums[k][l] += row[j + l] * q[k * cols + j + l];
  for (size_t l = 0; j + l < cols; ++l)
    for (size_t k = 0; k < kN; ++k) sums[k][l] += row[j + l] * q[k * cols + j + l];
  for (size_t k = 0; k < kN; ++k) {
    for (size_t half = kLanes / 2; half > 0; half /= 2)
      for (size_t l = 0; l < half; ++l) sums[k][l] += sums[k][l + half];
    out[k] = sums[k][0];
  }
}

void project(const LowRankShape& s, const float* m, const float* q, float* p) {
  for (size_t i = 0; i < s.rows; ++i) {
    size_t k = 0;
    for (; k + kTogether <= s.rank; k += kTogether)
      dots<kTogether>(m + i * s.cols, q + k * s.cols, s.cols, p + i * s.rank + k);
    for (; k < s.rank; ++k) dots<1>(m + i * s.cols, q + k * s.cols, s.cols, p + i * s.rank + k);
  }
}

// q[k] += p[k] * row, element by element.
void add_rows(const LowRankShape& s, const float* row, const float* p, float* q) {
  for (size_t k = 0; k < s.rank; ++k) {
    const float factor = p[k];
    float* const to = q + k * s.cols;
    for (size_t j = 0; j < s.cols; ++j) to[j] += factor * row[j];
  }
}

void back_project(const LowRankShape& s, const float* m, const float* p, float* q) {
  std::fill(q, q + s.rank * s.cols, 0.0F);
  for (size_t i = 0; i < s.rows; ++i) add_rows(s, m + i * s.cols, p + i * s.rank, q);
}

void expand(const LowRankShape& s, const LowRankFactors& factors, const float* in, float* out) {
  constexpr size_t kRun = 256;  // of a row, summed up in the first-level cache
  for (size_t i = 0; i < s.rows; ++i) {
    for (size_t begin = 0; begin < s.cols; begin += kRun) {
      const size_t n = std::min(kRun, s.cols - begin);
      float sum[kRun] = {};
      for (size_t k = 0; k < s.rank; ++k) {
        const float factor = factors.p[i * s.rank + k];
        const float* const from = factors.q + k * s.cols + begin;
        for (size_t j = 0; j < n; ++j) sum[j] += factor * from[j];
      }
      const size_t at = i * s.cols + begin;
      for (size_t j = 0; j < n; ++j) out[at + j] = in != nullptr ? in[at + j] - sum[j] : sum[j];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(project);
HWY_EXPORT(back_project);
HWY_EXPORT(expand);

void low_rank_project(const LowRankShape& shape, const float* m, const float* q, float* p) {
  HWY_DYNAMIC_DISPATCH(project)(shape, m, q, p);
}
void low_rank_back_project(const LowRankShape& shape, const float* m, const float* p, float* q) {
  HWY_DYNAMIC_DISPATCH(back_project)(shape, m, p, q);
}
void low_rank_expand(const LowRankShape& shape, const LowRankFactors& factors, const float* in, float* out) {
  HWY_DYNAMIC_DISPATCH(expand)(shape, factors, in, out);
}

}  // namespace tern
#endif  // HWY_ONCE
