#include "runtime/exec/program.h"

#include <algorithm>
#include <utility>

namespace tern {

namespace {

// Whether a step adds an operand to what the steps before it made of its destination.
bool adds(StepKind kind) {
  return kind == StepKind::kRecvReduce || kind == StepKind::kReduce || kind == StepKind::kDecodeAccumulate;
}
bool receives(StepKind kind) {
  return kind == StepKind::kRecv || kind == StepKind::kRecvReduce;
}
bool decodes(StepKind kind) {
  return kind == StepKind::kDecode || kind == StepKind::kDecodeAccumulate;
}
bool receives_wire(const Step& step) {
  return step.kind == StepKind::kRecv && step.dst.buffer == Buffer::kWire;
}

class Compiler {
 public:
  explicit Compiler(Plan plan) { program_.plan = std::move(plan); }

  Program run() {
    const Plan& plan = program_.plan;
    program_.regions = scratch_regions(plan);
    program_.rounds.resize(static_cast<size_t>(plan.n_rounds));
    find_kept_wire();
    const std::vector<Step>& steps = plan.steps;
    for (size_t i = 0; i < steps.size();) i = add(i);
    for (const Round& round : program_.rounds) {
      program_.max_recvs += static_cast<int>(round.recvs.size());
      program_.max_sends += static_cast<int>(round.sends.size());
    }
    return std::move(program_);
  }

 private:
  // Whether received wire bytes are needed after their round.
  void find_kept_wire() {
    kept_.resize(static_cast<size_t>(program_.plan.n_wire));
    received_in_.assign(kept_.size(), -1);
    for (const Step& step : program_.plan.steps) {
      if (receives_wire(step)) {
        received_in_.at(static_cast<size_t>(step.dst.slot)) = step.round;
      }
      const bool reads_wire = step.kind != StepKind::kRecv && step.src.buffer == Buffer::kWire;
      if (!reads_wire) continue;
      const auto wire = static_cast<size_t>(step.src.slot);
      if (received_in_.at(wire) >= 0 && received_in_[wire] != step.round) kept_[wire] = true;
    }
    received_in_.assign(kept_.size(), -1);
  }

  // Adds the step at `i`, or the fused run that begins there; returns the index after it.
  size_t add(size_t i) {
    const Step& step = program_.plan.steps[i];
    Round& round = program_.rounds.at(step.round);
    note_runs(step);
    switch (step.kind) {
      case StepKind::kSend:
        round.sends.push_back({.kind = ActionKind::kSend,
                               .peer = step.peer,
                               .src = step.src,
                               .wire = step.src.buffer == Buffer::kWire ? step.src.slot : -1});
        return i + 1;
      case StepKind::kEncode:
        received_in_.at(static_cast<size_t>(step.dst.slot)) = -1;
        round.work.push_back({.kind = ActionKind::kEncode,
                              .src = step.src,
                              .dst = step.dst,
                              .wire = step.dst.slot,
                              .is_finished = is_finished_sum(i)});
        return i + 1;
      default:
        break;
    }
    if (receives_wire(step)) {
      add_wire_recv(step, round);
      return i + 1;
    }
    return add_combine(i, round);
  }

  // Whether what is encoded is a sum that encoded shares went into: with one quantisation per level, a second
  // one is of a complete sum.
  bool is_finished_sum(size_t encode) const {
    const std::vector<Step>& steps = program_.plan.steps;
    const Ref& sum = steps[encode].src;
    return std::any_of(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(encode), [&](const Step& step) {
      return step.kind == StepKind::kDecodeAccumulate && step.dst.chunk < sum.chunk + sum.n_chunks &&
             sum.chunk < step.dst.chunk + step.dst.n_chunks;
    });
  }

  void note_runs(const Step& step) {
    if (step.src.n_chunks > 1 || step.dst.n_chunks > 1) program_.moves_runs = true;
  }

  static int recv_of_wire(const Round& round, int wire) {
    for (size_t i = 0; i < round.recvs.size(); ++i) {
      if (round.recvs[i].wire == wire) return static_cast<int>(i);
    }
    return -1;
  }

  void add_wire_recv(const Step& step, Round& round) {
    received_in_.at(static_cast<size_t>(step.dst.slot)) = step.round;
    round.recvs.push_back(
        {.peer = step.peer, .dst = step.dst, .lands = true, .encoded = true, .wire = step.dst.slot});
    if (kept_[static_cast<size_t>(step.dst.slot)]) {
      round.work.push_back({.kind = ActionKind::kKeepWire,
                            .dst = step.dst,
                            .wire = step.dst.slot,
                            .recv_idx = static_cast<int>(round.recvs.size()) - 1});
    }
  }

  size_t add_combine(size_t begin, Round& round) {
    const std::vector<Step>& steps = program_.plan.steps;
    const Step& first = steps[begin];
    Action action{.kind = ActionKind::kCombine, .dst = first.dst};
    action.first_operand = static_cast<int>(program_.operands.size());
    if (adds(first.kind)) program_.operands.push_back({.local = first.dst});
    size_t i = begin;
    for (; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (i > begin && step.round != first.round) break;
      note_runs(step);
      if (receives_wire(step)) {  // of a share that is decoded further on
        add_wire_recv(step, round);
        continue;
      }
      if (i > begin && (!adds(step.kind) || step.dst != first.dst)) break;
      if (decodes(step.kind)) action.kind = ActionKind::kDecode;
      add_operand(step, round);
    }
    action.n_operands = static_cast<int>(program_.operands.size()) - action.first_operand;
    // A receive that is the only operand goes straight to its place.
    if (action.n_operands == 1 && first.kind == StepKind::kRecv) round.recvs.back().lands = true;
    round.work.push_back(action);
    return i;
  }

  void add_operand(const Step& step, Round& round) {
    if (decodes(step.kind)) {
      const auto wire = static_cast<size_t>(step.src.slot);
      const bool passes_by = received_in_[wire] == static_cast<int>(step.round) && !kept_[wire];
      program_.operands.push_back(
          {.recv_idx = passes_by ? recv_of_wire(round, step.src.slot) : -1, .wire = step.src.slot});
      return;
    }
    if (!receives(step.kind)) {
      program_.operands.push_back({.local = step.src});
      return;
    }
    round.recvs.push_back({.peer = step.peer, .dst = step.dst});
    program_.operands.push_back({.recv_idx = static_cast<int>(round.recvs.size()) - 1});
  }

  Program program_;
  std::vector<bool> kept_;
  std::vector<int> received_in_;  ///< round in which a wire place was received into; -1: encoded here
};

}  // namespace

Program compile(Plan plan) {
  return Compiler(std::move(plan)).run();
}

}  // namespace tern
