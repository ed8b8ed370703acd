// The place in shared memory where the first error of a communicator is written for all its ranks to read.
#pragma once

#include <optional>

#include "runtime/transport/mailbox_layout.h"

namespace tern::mailbox {

/// Publishes an error unless one is there already. Any thread of any rank. Text beyond 1008 bytes is cut.
void publish(Fault& fault, const Error& error);

/// One load while there is none.
inline bool has_fault(const Fault& fault) {
  // relaxed: only says that it is worth calling read(), which synchronises.
  return fault.state.load(std::memory_order_relaxed) != kNoFault;
}

/// The error, once it is wholly written.
std::optional<Error> read(const Fault& fault);

}  // namespace tern::mailbox
