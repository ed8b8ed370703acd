#include "runtime/communicator/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/reduce.h"
#include "runtime/base/philox.h"

namespace tern {
namespace {

bool is_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace

Result<LowRank> LowRank::create(const LowRankShape& shape, uint64_t seed) {
  const size_t most = std::min({shape.rows, shape.cols, kMostRank});
  if (most == 0)
    return error(Code::kInvalidArgument, "a matrix of {} x {} has no elements", shape.rows, shape.cols);
  if (shape.rank < 1 || shape.rank > most)
    return error(Code::kInvalidArgument, "rank {} of a matrix of {} x {}; allowed: 1..{}", shape.rank,
                 shape.rows, shape.cols, most);
  return LowRank(shape, seed);
}

LowRank::LowRank(const LowRankShape& shape, uint64_t seed)
    : shape_(shape), seed_(seed), p_(shape.rows * shape.rank), q_(shape.cols * shape.rank) {
  for (size_t k = 0; k < shape_.rank; ++k) renew_direction(k);
  q_before_ = q_;
}

// A direction in which there was nothing would stay nothing for ever.
void LowRank::renew_direction(size_t k) {
  Philox random(seed_, k);
  for (size_t j = 0; j < shape_.cols; ++j)
    q_[k * shape_.cols + j] = static_cast<float>(static_cast<int32_t>(random.next())) * 0x1p-31F;
}

// Modified Gram-Schmidt, twice, in fp64: every rank computes it from the same numbers, and must get the same.
// Columns in which nothing is left become zero.
void LowRank::orthonormalise() {
  constexpr double kNothing = 1e-6;  // of the column's length before
  const size_t r = shape_.rank;
  const auto dot = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < shape_.rows; ++i)
      sum += static_cast<double>(p_[i * r + a]) * static_cast<double>(p_[i * r + b]);
    return sum;
  };
  for (size_t k = 0; k < r; ++k) {
    const double before = std::sqrt(dot(k, k));
    for (int turn = 0; turn < 2; ++turn)
      for (size_t c = 0; c < k; ++c) {
        const double along = dot(c, k);
        for (size_t i = 0; i < shape_.rows; ++i)
          p_[i * r + k] = static_cast<float>(static_cast<double>(p_[i * r + k]) -
                                             along * static_cast<double>(p_[i * r + c]));
      }
    const double left = std::sqrt(dot(k, k));
    const double factor = left > kNothing * before ? 1 / left : 0;
    for (size_t i = 0; i < shape_.rows; ++i)
      p_[i * r + k] = static_cast<float>(static_cast<double>(p_[i * r + k]) * factor);
  }
}

Status LowRank::average(Communicator& comm, std::span<float> matrix, std::span<float> residual,
                        const CallOptions& options) {
  const size_t n = shape_.rows * shape_.cols;
  if (matrix.size() != n || residual.size() != n)
    return error(Code::kInvalidArgument, "a matrix of {} x {} and its residual hold {} and {} elements",
                 shape_.rows, shape_.cols, matrix.size(), residual.size());
  CallOptions dense = options;
  dense.codec = CodecSpec();
  dense.residual = nullptr;
  q_before_ = q_;
  const std::array<const void*, 2> both = {matrix.data(), residual.data()};
  reduce(Dtype::kFloat32, Op::kSum, matrix.data(), {both, n});

  low_rank_project(shape_, matrix.data(), q_.data(), p_.data());
  TERN_TRY(comm.all_reduce(std::span<const float>(p_), std::span<float>(p_), Op::kAvg, dense));
  if (!is_finite(p_)) {
    std::fill(matrix.begin(), matrix.end(), std::numeric_limits<float>::quiet_NaN());
    return {};
  }
  orthonormalise();
  low_rank_back_project(shape_, matrix.data(), p_.data(), q_.data());
  low_rank_expand(shape_, {p_.data(), q_.data()}, matrix.data(), residual.data());
  TERN_TRY(comm.all_reduce(std::span<const float>(q_), std::span<float>(q_), Op::kAvg, dense));
  low_rank_expand(shape_, {p_.data(), q_.data()}, nullptr, matrix.data());
  for (size_t k = 0; k < shape_.rank; ++k) {
    const auto first = q_.begin() + static_cast<std::ptrdiff_t>(k * shape_.cols);
    const auto last = first + static_cast<std::ptrdiff_t>(shape_.cols);
    if (std::all_of(first, last, [](float x) { return x == 0; })) renew_direction(k);
  }
  return {};
}

}  // namespace tern
