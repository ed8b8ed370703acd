// What can be said about a plan from itself alone; the first half of verify().
#pragma once

#include "runtime/plan/plan.h"

namespace tern {

/// Peers, rounds, chunks and places in range and steps of a shape that their kind allows: data of equal
/// chunks, kInput never written, only kEncode and kRecv write kWire, only chunks that
/// the rank has.
///
/// Errors: kInternal with the rank, the step and what is wrong.
Status check_form(const Plan& plan);

/// "rank 2, round 5, send input[3] to rank 1: " and what is wrong.
Error plan_error(const Plan& plan, const Step& step, std::string_view what);

}  // namespace tern
