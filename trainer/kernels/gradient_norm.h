// Sums of squares for clipping, and the search for values that are not finite.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/kernels/team.h"

namespace tern::trainer {

/// Elements per partial sum of sum_of_squares().
inline constexpr int64_t kNormBlock = 4096;

/// Sum of x^2 in fp64, exact to a few ulp of fp64; NaN or infinite when an element is.
///
/// Blocks of kNormBlock elements are summed in a fixed order, whatever the team: the result depends on the
/// values and on where the span starts only. Reads 4 bytes per fp32 element.
template <class T>
double sum_of_squares(Team& team, std::span<const T> x);

/// Index of the first element that is NaN or infinite, or -1.
template <class T>
int64_t first_non_finite(std::span<const T> x);

/// x *= factor; for clipping without an optimiser step, and for unscaling.
template <class T>
void scale(Team& team, std::span<T> x, T factor);

extern template double sum_of_squares(Team&, std::span<const float>);
extern template double sum_of_squares(Team&, std::span<const double>);
extern template int64_t first_non_finite(std::span<const float>);
extern template int64_t first_non_finite(std::span<const double>);
extern template void scale(Team&, std::span<float>, float);
extern template void scale(Team&, std::span<double>, double);

}  // namespace tern::trainer
