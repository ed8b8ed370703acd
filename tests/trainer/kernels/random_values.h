// Reproducible inputs and comparisons for kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "runtime/base/philox.h"
#include "trainer/kernels/rows.h"

namespace tern::trainer {

template <class T>
std::vector<T> random_values(int64_t n, uint64_t seed, double sigma = 1.0) {
  Philox random(seed);
  std::vector<T> values(static_cast<size_t>(n));
  for (T& value : values) value = static_cast<T>(sigma * random.normal());
  return values;
}

/// The values as a matrix, its rows without gaps.
template <class T>
Rows<T> as_rows(std::vector<T>& values, int64_t width) {
  return {values.data(), static_cast<int64_t>(values.size()) / width, width, width};
}
template <class T>
Rows<const T> as_rows(const std::vector<T>& values, int64_t width) {
  return {values.data(), static_cast<int64_t>(values.size()) / width, width, width};
}

/// |got - want| <= n_epsilons * epsilon(T) * max(scale, |want|) for every element.
template <class T>
void expect_near(std::span<const T> got, std::span<const double> want, double n_epsilons,
                 double scale = 1.0) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = n_epsilons * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                           std::max(scale, std::abs(want[i]));
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], allowed) << "element " << i << " of " << got.size();
  }
}

}  // namespace tern::trainer
