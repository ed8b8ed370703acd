// Sequences of a token file: the training part in a shuffled order without end, the validation part in its
// own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/data/token_file.h"

namespace tern::trainer {

/// Inputs and targets of `n_sequences` sequences, each (B, T), sequence by sequence.
struct TokenBatch {
  std::vector<int32_t> inputs;   // (B, T)
  std::vector<int32_t> targets;  // (B, T); -1 where there is nothing to predict
};

struct DatasetOptions {
  int sequence_length = 256;
  double validation_fraction = 0.05;
  uint64_t shuffle_seed = 1;
  int64_t train_batch = 1;  ///< sequences of one step, for the check that there are enough
  bool needs_validation = true;
};

/// The sequences are the consecutive, non-overlapping windows of sequence_length + 1 tokens that share their
/// ends; the last validation_fraction of them is validation. Sample g of training, counted from the start of
/// the run over all epochs, is window Permutation(n, seed, g / n)(g % n): it depends on nothing else, so the
/// batch of a step is the same set for every number of ranks, and the position in the data is one number.
///
/// Threads: reading from any thread. The token file must outlive it.
class Dataset {
 public:
  /// Errors: kInvalidArgument when the text has too few sequences, with all numbers.
  static Result<Dataset> create(std::span<const uint8_t> tokens, const DatasetOptions& options);

  int64_t n_train() const { return n_train_; }
  int64_t n_validation() const { return n_validation_; }
  int sequence_length() const { return options_.sequence_length; }

  /// Writes training samples [first, first + n) into `batch`.
  void train_samples(uint64_t first, int64_t n, TokenBatch& batch) const;

  /// Writes n validation sequences at `first` of `n_used` that are spread evenly over the validation part;
  /// places beyond n_used are filled with targets of -1.
  void validation_samples(int64_t first, int64_t n, int64_t n_used, TokenBatch& batch) const;

 private:
  Dataset(std::span<const uint8_t> tokens, const DatasetOptions& options)
      : tokens_(tokens), options_(options) {}
  void copy_window(int64_t window, int64_t place, TokenBatch& batch) const;

  std::span<const uint8_t> tokens_;
  DatasetOptions options_;
  int64_t n_train_ = 0;
  int64_t n_validation_ = 0;
};

}  // namespace tern::trainer
