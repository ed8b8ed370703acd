// Sleeping until a peer has something to say, without a system call on either side while nobody sleeps.
//
// Protocol (Dekker): the one who publishes stores the word that the sleeper polls, then looks at `armed`; the
// sleeper stores `armed`, then polls that word once more. All four accesses are seq_cst, so in their single
// total order either the publisher sees `armed` (and rings) or the sleeper sees what was published. A ring
// that comes before the futex call changes `rung`, so the futex call returns at once.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/transport/mailbox_layout.h"

namespace tern::mailbox {

/// Announces that the owner will sleep. Returns the token for sleep_on().
uint32_t arm(Bell& bell);
void disarm(Bell& bell);

/// Wakes the owner if it is armed. Must follow a seq_cst store of what the owner polls. One load when it is
/// not armed.
void ring_if_armed(Bell& bell);
/// Wakes the owner in any case.
void ring(Bell& bell);

/// Sleeps until the bell has rung since arm() gave `token`, or at most so long; may return early. Linux
/// futex, shared between processes.
void sleep_on(const Bell& bell, uint32_t token, Clock::duration at_most);
bool has_rung(const Bell& bell, uint32_t token);

}  // namespace tern::mailbox
