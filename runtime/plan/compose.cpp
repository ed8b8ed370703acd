#include "runtime/plan/compose.h"

#include <algorithm>
#include <limits>

namespace tern {
namespace {

constexpr int kMaxIdx = std::numeric_limits<int16_t>::max();  // chunks, places and peers are 16-bit

template <class Change>
Plan with_refs(const Plan& plan, Change change) {
  Plan result = plan;
  for (Step& step : result.steps) {
    if (has_src(step.kind)) change(step.src);
    if (has_dst(step.kind)) change(step.dst);
  }
  return result;
}

int16_t narrow(int idx) {
  TERN_CHECK(idx >= 0 && idx <= kMaxIdx);
  return static_cast<int16_t>(idx);
}

}  // namespace

Result<Plan> sequence(const Plan& a, const Plan& b) {
  if (a.rank != b.rank || a.n_ranks != b.n_ranks || a.n_chunks != b.n_chunks)
    return error(Code::kInvalidArgument,
                 "plans of one sequence must be of one rank, world and cut, not rank {} of {} with {} chunks "
                 "and rank {} "
                 "of {} with {} chunks",
                 a.rank, a.n_ranks, a.n_chunks, b.rank, b.n_ranks, b.n_chunks);
  Plan result = a;
  result.algorithm = a.algorithm + ";" + b.algorithm;
  result.n_rounds = a.n_rounds + b.n_rounds;
  result.moves_runs = a.moves_runs || b.moves_runs;
  // b starts when all that a sent and received is done with, so it may use the same places, unless runs of
  // chunks tie them together in another way: see scratch_regions().
  const int shift = result.moves_runs ? a.n_scratch : 0;
  result.n_scratch = std::max(a.n_scratch, shift + b.n_scratch);
  result.n_wire = std::max(a.n_wire, b.n_wire);
  result.encoded = a.encoded || b.encoded;
  result.encodes_sums = a.encodes_sums || b.encodes_sums;
  result.uneven = a.uneven || b.uneven;
  result.out_of_place_only = a.out_of_place_only || b.out_of_place_only;
  for (Step step : b.steps) {
    step.round = static_cast<uint16_t>(step.round + a.n_rounds);
    for (Ref* ref : {&step.src, &step.dst})
      if (ref->buffer == Buffer::kScratch) ref->slot = narrow(ref->slot + shift);
    result.steps.push_back(step);
  }
  return result;
}

Result<Plan> on_group(const Plan& local, std::span<const int> members, int world) {
  if (static_cast<int>(members.size()) != local.n_ranks)
    return error(Code::kInvalidArgument, "a plan over {} ranks cannot run on a group of {}", local.n_ranks,
                 members.size());
  for (const int member : members)
    if (member < 0 || member >= world)
      return error(Code::kInvalidArgument, "group member {} is not a rank of a world of {}", member, world);
  const auto global = [&](int rank) { return members[static_cast<size_t>(rank)]; };
  Plan result = local;
  result.rank = global(local.rank);
  result.root = global(local.root);
  result.n_ranks = world;
  for (Step& step : result.steps)
    if (step.peer >= 0) step.peer = narrow(global(step.peer));
  return result;
}

Plan refine(const Plan& plan, int factor) {
  Plan result = with_refs(plan, [&](Ref& ref) {
    ref.chunk = narrow(ref.chunk * factor);
    ref.n_chunks = narrow(ref.n_chunks * factor);
    ref.slot = narrow(ref.slot * factor);
  });
  result.n_chunks *= factor;
  result.moves_runs = result.moves_runs || factor > 1;
  result.n_scratch *= factor;
  result.n_wire *= factor;
  return result;
}

Plan on_chunk(const Plan& plan, int chunk, int n_chunks) {
  Plan result = with_refs(plan, [&](Ref& ref) { ref.chunk = narrow(ref.chunk + chunk * plan.n_chunks); });
  result.n_chunks = plan.n_chunks * n_chunks;
  return result;
}

Plan in_output(const Plan& plan) {
  Plan result = with_refs(plan, [](Ref& ref) {
    if (ref.buffer == Buffer::kInput) ref.buffer = Buffer::kOutput;
  });
  std::erase_if(result.steps, [](const Step& s) { return s.kind == StepKind::kCopy && s.src == s.dst; });
  return result;
}

}  // namespace tern
