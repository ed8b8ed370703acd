#include "runtime/plan/form.h"

#include <limits>

namespace tern {
namespace {

bool has_peer(StepKind kind) {
  return kind == StepKind::kSend || kind == StepKind::kRecv || kind == StepKind::kRecvReduce;
}

/// A plan and what its rank has of the caller's buffers.
struct Context {
  const Plan& plan;
  HeldChunks input, output;
};

std::string_view wrong_with(const Context& context, const Ref& ref) {
  const Plan& plan = context.plan;
  if (ref.n_chunks < 0 || ref.chunk < 0 || ref.chunk + ref.n_chunks > plan.n_chunks)
    return "its chunks are not in the vector";
  if (ref.n_chunks == 0) return "";
  const int n_slots = ref.buffer == Buffer::kScratch ? plan.n_scratch : plan.n_wire;
  const bool has_slots = ref.buffer == Buffer::kScratch || ref.buffer == Buffer::kWire;
  if (has_slots && (ref.slot < 0 || ref.slot + ref.n_chunks > n_slots)) return "there is no such place";
  if (has_slots) return "";
  if (ref.slot != 0) return "only scratch and wire have places";
  const HeldChunks& held = ref.buffer == Buffer::kInput ? context.input : context.output;
  const bool holds = ref.chunk >= held.first && ref.chunk + ref.n_chunks <= held.first + held.n;
  return holds ? "" : "the rank has no such chunks in that buffer";
}

// Which buffers a kind may read and write.
std::string_view wrong_with_buffers(const Step& step) {
  const bool src_wire = step.src.buffer == Buffer::kWire;
  const bool dst_wire = step.dst.buffer == Buffer::kWire;
  if (has_dst(step.kind) && step.dst.n_chunks > 0 && step.dst.buffer == Buffer::kInput)
    return "it writes the caller's input";
  switch (step.kind) {
    case StepKind::kSend:
    case StepKind::kRecv:
      return "";
    case StepKind::kEncode:
      return dst_wire && !src_wire ? "" : "encode goes from plain memory to wire";
    case StepKind::kDecode:
    case StepKind::kDecodeAccumulate:
      return src_wire && !dst_wire ? "" : "decode goes from wire to plain memory";
    default:
      return dst_wire || (has_src(step.kind) && src_wire) ? "encoded bytes can only be moved or decoded" : "";
  }
}

std::string_view wrong_with(const Context& context, const Step& step) {
  const Plan& plan = context.plan;
  if (step.round >= plan.n_rounds) return "its round is past the last one";
  if (has_peer(step.kind) && (step.peer < 0 || step.peer >= plan.n_ranks || step.peer == plan.rank))
    return "its peer is not another rank";
  if (has_src(step.kind))
    if (const auto wrong = wrong_with(context, step.src); !wrong.empty()) return wrong;
  if (has_dst(step.kind))
    if (const auto wrong = wrong_with(context, step.dst); !wrong.empty()) return wrong;
  const bool is_run =
      (has_src(step.kind) && step.src.n_chunks > 1) || (has_dst(step.kind) && step.dst.n_chunks > 1);
  if (is_run && !plan.moves_runs) return "it works on several chunks, which the plan does not announce";
  const bool is_local = has_src(step.kind) && has_dst(step.kind);
  const bool same_chunks = step.src.chunk == step.dst.chunk || plan.collective == Collective::kAllToAll;
  if (is_local && (!same_chunks || step.src.n_chunks != step.dst.n_chunks))
    return "it reads other chunks than it writes";
  return wrong_with_buffers(step);
}

// See scratch_regions().
Status check_regions(const Plan& plan) {
  if (!plan.moves_runs || plan.n_scratch < 2 || plan.collective == Collective::kAllToAll) return {};
  struct Region {
    bool is_used = false;
    bool all_at_first = true;
    bool same_offset = true;
    int offset = 0;
  };
  const std::vector<int> first = scratch_regions(plan);
  std::vector<Region> regions(first.size());
  for (const Step& step : plan.steps)
    for (const Ref* ref : {&step.src, &step.dst}) {
      if (ref->buffer != Buffer::kScratch || ref->n_chunks == 0) continue;
      const int at = first[static_cast<size_t>(ref->slot)];
      Region& region = regions[static_cast<size_t>(at)];
      if (!region.is_used) region.offset = ref->chunk - ref->slot;
      region.is_used = true;
      region.all_at_first = region.all_at_first && ref->slot == at;
      region.same_offset = region.same_offset && region.offset == ref->chunk - ref->slot;
      if (!region.all_at_first && !region.same_offset)
        return plan_error(plan, step, "its chunks and those around it in scratch are not neighbours");
    }
  return {};
}

}  // namespace

Error plan_error(const Plan& plan, const Step& step, std::string_view what) {
  return error_at(plan.rank, Code::kInternal, "{} by {}, rank {} of {}, round {}, {}: {}",
                  name(plan.collective), plan.algorithm, plan.rank, plan.n_ranks, step.round, to_string(step),
                  what);
}

Status check_form(const Plan& plan) {
  const auto wrong_plan = [&](std::string_view what) {
    return error_at(plan.rank, Code::kInternal, "{} by {}, rank {} of {}: {}", name(plan.collective),
                    plan.algorithm, plan.rank, plan.n_ranks, what);
  };
  if (plan.rank < 0 || plan.rank >= plan.n_ranks) return wrong_plan("there is no such rank");
  if (plan.root < 0 || plan.root >= plan.n_ranks) return wrong_plan("there is no such root");
  if (plan.n_chunks < 1) return wrong_plan("the vector has no chunks");
  if (owners_fixed(plan.collective) && plan.n_chunks % plan.n_ranks != 0)
    return wrong_plan("its chunks are not a multiple of its ranks");
  if (plan.collective == Collective::kAllToAll && plan.n_chunks != plan.n_ranks)
    return wrong_plan("all_to_all has one chunk per rank");
  if (plan.n_rounds >= std::numeric_limits<uint16_t>::max()) return wrong_plan("it has too many rounds");
  const Context context{plan, held_chunks(plan, Buffer::kInput), held_chunks(plan, Buffer::kOutput)};
  int round = 0;
  for (const Step& step : plan.steps) {
    if (step.round < round) return plan_error(plan, step, "it comes after a later round");
    round = step.round;
    if (const auto wrong = wrong_with(context, step); !wrong.empty()) return plan_error(plan, step, wrong);
  }
  return check_regions(plan);
}

}  // namespace tern
