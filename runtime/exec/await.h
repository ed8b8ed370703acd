// The waits of one call: poll, yield, sleep, and find out who is at fault when time runs out.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/exec/accuser.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/waiter.h"
#include "runtime/transport/transport.h"

namespace tern {

/// What the waits of a call need to know; all outlive it.
struct Waiting {
  Transport& transport;
  SpinBudget& spin;
  const WaitPolicy& policy;
  const Call& call;
  Accuser& accuser;
  int rank;  ///< this one, of the world
};

/// The request's peer may itself only wait, so that all ranks are asked whom they wait for. What another rank
/// finds out first is taken over.
template <class Request>
Error time_ran_out(const Waiting& w, Request& request) {
  // Others' aborts ring; this is how often the clock is looked at.
  constexpr std::chrono::milliseconds kLookEvery{2};
  w.accuser.ask({.call = to_string(w.call.signature),
                 .rank = w.rank,
                 .peer = request.peer,
                 .timeout = w.call.timeout,
                 .in_call = w.call.timeout - Seconds(w.call.deadline.left())});
  while (true) {
    const std::optional<Error> answer = w.accuser.answer();
    const uint64_t token = w.transport.arm();
    if (w.transport.poll(request) == Poll::kFailed) return w.transport.failure();
    if (answer) return *answer;
    w.transport.sleep(token, kLookEvery);
  }
}

/// Waits until the request is done; nothing then, else why it never will be. `progress` moves what else is
/// under way, and is false when that failed.
template <class Request, class Progress>
std::optional<Error> await(const Waiting& w, Request& request, const Progress& progress) {
  Waiter waiter(w.transport, w.spin, w.policy, w.call.deadline);
  Poll poll = w.transport.poll(request);
  while (poll == Poll::kPending) {
    if (!waiter.step() || (waiter.sleeps() && w.accuser.is_asked())) return time_ran_out(w, request);
    // A send that the transport could not take yet may be what the awaited peer itself waits for.
    if (waiter.idle() && !progress()) return w.transport.failure();
    poll = w.transport.poll(request);
  }
  if (poll == Poll::kFailed) return w.transport.failure();
  waiter.finish();
  return std::nullopt;
}

}  // namespace tern
