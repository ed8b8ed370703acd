#include "runtime/bootstrap/speaker.h"

#include <algorithm>

namespace tern {

int speaker_of(const Error& failure, int size) {
  const bool others_speak =
      failure.code == Code::kPeerLost || failure.code == Code::kTimeout || failure.code == Code::kMismatch;
  if (others_speak) return failure.rank == 0 && size > 1 ? 1 : 0;
  return std::max(failure.rank, 0);
}

bool speaks_without_world(const Error& error, const EnvironmentLookup& lookup) {
  const Result<Launch> launch = detect_launch(lookup);
  return !launch.ok() || error.rank < 0 || launch->rank == speaker_of(error, launch->size);
}

bool speaks_first(const EnvironmentLookup& lookup) {
  const Result<Launch> launch = detect_launch(lookup);
  return !launch.ok() || launch->rank == 0;
}

}  // namespace tern
