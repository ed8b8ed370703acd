#include "trainer/step_agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tern::trainer {
namespace {

constexpr size_t kVoteSize = 5;

std::string reason_of(const StepVote& vote, int rank, const ParameterLayout& layout) {
  if (!std::isfinite(vote.loss_sum)) return fmt::format("the loss of rank {} is {}", rank, vote.loss_sum);
  if (vote.bad_element < 0) return {};
  const auto element_idx = static_cast<int64_t>(vote.bad_element);
  const Parameter& parameter = layout[layout.at_element(element_idx)];
  const std::string where =
      parameter.layer >= 0 ? fmt::format(" (layer {})", parameter.layer) : std::string();
  return fmt::format("rank {}'s gradient of {}{} is not finite", rank, parameter.name, where);
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): what a step is decided by
Result<StepVerdict> agree_on_step(Communicator& comm, const StepVote& mine, bool replicated,
                                  const ParameterLayout& layout, Traffic& traffic) {
  const std::array<double, kVoteSize> record = {mine.loss_sum, mine.sum_of_squares, mine.bad_element,
                                                mine.stop, mine.overlap_seconds};
  std::vector<double> all(kVoteSize * static_cast<size_t>(comm.size()));
  const auto start = Clock::now();
  TERN_TRY(comm.all_gather(std::span<const double>(record), std::span<double>(all)));
  const double waited = seconds_since(start);
  const uint64_t n_bytes = sizeof(double) * kVoteSize * static_cast<uint64_t>(comm.size() - 1);
  traffic += {n_bytes, n_bytes, waited, waited};

  StepVerdict verdict;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const double* theirs = all.data() + static_cast<size_t>(rank) * kVoteSize;
    const StepVote vote = {theirs[0], theirs[1], theirs[2], theirs[3], theirs[4]};
    verdict.loss_sum += vote.loss_sum;
    if (!replicated || rank == 0) verdict.sum_of_squares += vote.sum_of_squares;
    verdict.overlap_seconds =
        rank == 0 ? vote.overlap_seconds : std::min(verdict.overlap_seconds, vote.overlap_seconds);
    verdict.stop = verdict.stop || vote.stop != 0;
    if (verdict.skip.empty()) verdict.skip = reason_of(vote, rank, layout);
  }
  if (verdict.skip.empty() && !std::isfinite(verdict.sum_of_squares)) {
    verdict.skip = "the sum of all ranks' gradients is not finite, though each rank's own is";
  }
  return verdict;
}

}  // namespace tern::trainer
