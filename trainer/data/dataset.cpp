#include "trainer/data/dataset.h"

#include <algorithm>
#include <cmath>

#include "trainer/data/permutation.h"

namespace tern::trainer {

Result<Dataset> Dataset::create(std::span<const uint8_t> tokens, const DatasetOptions& options) {
  Dataset dataset(tokens, options);
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  const int64_t n_windows = std::max<int64_t>(0, (n_tokens - 1) / options.sequence_length);
  const double share = options.needs_validation ? options.validation_fraction : 0.0;
  dataset.n_validation_ = static_cast<int64_t>(std::floor(static_cast<double>(n_windows) * share));
  if (share > 0) dataset.n_validation_ = std::max<int64_t>(1, dataset.n_validation_);
  dataset.n_train_ = n_windows - dataset.n_validation_;
  if (dataset.n_train_ < options.train_batch) {
    const int64_t needed_windows = options.train_batch + dataset.n_validation_;
    return error(
        Code::kInvalidArgument,
        "the data is too small: {} tokens make {} training sequences of {} ({} more are kept for "
        "validation), and one step takes {}; give at least {} tokens, or a smaller batch or sequence",
        n_tokens, dataset.n_train_, options.sequence_length, dataset.n_validation_, options.train_batch,
        needed_windows * options.sequence_length + 1);
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
