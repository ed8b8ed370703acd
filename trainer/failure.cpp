#include "trainer/session.h"

namespace tern::trainer {

bool speaks_for_failure(const World& world, const Error& error) {
  // The store's first failure is the same for all ranks, what each saw of it is not.
  const std::optional<Error> first = world.store ? world.store->failure() : std::nullopt;
  const Error& cause = first ? *first : error;
  const bool others_speak =
      cause.code == Code::kPeerLost || cause.code == Code::kTimeout || cause.code == Code::kMismatch;
  if (others_speak) return world.rank == (cause.rank == 0 && world.size > 1 ? 1 : 0);
  return world.rank == (cause.rank < 0 ? 0 : cause.rank);
}

}  // namespace tern::trainer
