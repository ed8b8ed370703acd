#include "runtime/bootstrap/speaker.h"
#include "trainer/session.h"

namespace tern::trainer {

bool speaks_for_failure(const World& world, const Error& error) {
  // The store's first failure is the same for all ranks, what each saw of it is not.
  const std::optional<Error> first = world.store ? world.store->failure() : std::nullopt;
  const Error& cause = first ? *first : error;
  return world.rank == speaker_of(cause, world.size);
}

}  // namespace tern::trainer
