// Who is at fault when a wait ran out of time: the awaited rank may itself only wait.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tern {

/// A wait, as the rank that waits tells of it.
struct Wait {
  std::string call;    ///< what the rank called
  int rank = -1;       ///< the rank that waits, of the world
  int peer = -1;       ///< the rank it waits for
  Seconds timeout{0};  ///< of the call
  Seconds in_call{0};  ///< since the call began
};

/// Finds the rank that all others wait for, by ways that lead around the transport.
///
/// Threads: one at a time.
class Accuser {
 public:
  virtual ~Accuser() = default;
  /// Whether another rank's time ran out, so that this one must tell whom it waits for. One atomic load.
  virtual bool is_asked() const = 0;
  /// Tells whom this rank waits for and asks all others; once. Does not block.
  virtual void ask(const Wait& wait) = 0;
  /// The error that the call ends with; nothing while other ranks may still answer. After ask().
  virtual std::optional<Error> answer() = 0;
};

}  // namespace tern
