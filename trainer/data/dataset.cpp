#include "trainer/data/dataset.h"

#include <algorithm>
#include <cmath>

#include "trainer/data/permutation.h"

namespace tern::trainer {

namespace {

int64_t validation_windows(int64_t n_windows, const DatasetOptions& options) {
  const double share = options.needs_validation ? options.validation_fraction : 0.0;
  if (share <= 0) return 0;
  return std::max<int64_t>(1, static_cast<int64_t>(std::floor(static_cast<double>(n_windows) * share)));
}

/// The fewest windows of which enough are left for one step.
int64_t least_windows(const DatasetOptions& options) {
  int64_t n = options.train_batch;
  while (n - validation_windows(n, options) < options.train_batch)
    n = options.train_batch + validation_windows(n, options);
  return n;
}

}  // namespace

Result<Dataset> Dataset::create(std::span<const uint8_t> tokens, const DatasetOptions& options) {
  Dataset dataset(tokens, options);
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  const int64_t n_windows = std::max<int64_t>(0, (n_tokens - 1) / options.sequence_length);
  dataset.n_validation_ = validation_windows(n_windows, options);
  dataset.n_train_ = n_windows - dataset.n_validation_;
  if (dataset.n_train_ < options.train_batch) {
    return error(
        Code::kInvalidArgument,
        "the data is too small: {} tokens make {} sequences of {}, and one step takes {} beside the {} "
        "for validation; give at least {} tokens, or a smaller batch or sequence",
        n_tokens, n_windows, options.sequence_length, options.train_batch, dataset.n_validation_,
        least_windows(options) * options.sequence_length + 1);
  }
  return dataset;
}

void Dataset::copy_window(int64_t window, int64_t place, TokenBatch& batch) const {
  const auto length = static_cast<size_t>(options_.sequence_length);
  const uint8_t* source = tokens_.data() + static_cast<size_t>(window) * length;
  const auto at = static_cast<std::ptrdiff_t>(static_cast<size_t>(place) * length);
  std::copy(source, source + length, batch.inputs.begin() + at);
  std::copy(source + 1, source + 1 + length, batch.targets.begin() + at);
}

void Dataset::train_samples(uint64_t first, int64_t n, TokenBatch& batch) const {
  const auto length = static_cast<size_t>(options_.sequence_length);
  batch.inputs.resize(static_cast<size_t>(n) * length);
  batch.targets.resize(static_cast<size_t>(n) * length);
  const auto n_windows = static_cast<uint64_t>(n_train_);
  for (int64_t place = 0; place < n; ++place) {
    const uint64_t sample = first + static_cast<uint64_t>(place);
    const Permutation order(n_windows, options_.shuffle_seed, sample / n_windows);
    copy_window(static_cast<int64_t>(order(sample % n_windows)), place, batch);
  }
}

void Dataset::validation_samples(int64_t first, int64_t n, int64_t n_used, TokenBatch& batch) const {
  const auto length = static_cast<size_t>(options_.sequence_length);
  batch.inputs.assign(static_cast<size_t>(n) * length, 0);
  batch.targets.assign(static_cast<size_t>(n) * length, -1);
  for (int64_t place = 0; place < n && first + place < n_used; ++place) {
    copy_window(n_train_ + (first + place) * n_validation_ / n_used, place, batch);
  }
}

}  // namespace tern::trainer
