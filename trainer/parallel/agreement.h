// Outcomes that all ranks must share before they go on.
#pragma once

#include <string>

#include "runtime/communicator/communicator.h"

namespace tern::trainer {

/// Every rank brings its outcome; all return the same: success, or the error of the lowest rank that failed,
/// with that rank as Error::rank. So a failure on one rank (a file missing there, a full disk) stops all of
/// them, and one of them knows that it is the one to say why. Collective. Errors: those of the collective.
Status agree(Communicator& comm, const Status& mine);

/// Rank 0's text on every rank; at most 4000 bytes. Collective.
Result<std::string> text_of_rank_0(Communicator& comm, const std::string& text);

}  // namespace tern::trainer
