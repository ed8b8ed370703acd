#include "runtime/plan/program.h"

#include <algorithm>
#include <cmath>

namespace tern::simulation {
namespace {

// Turns steps into ops and pairs every send with its receive.
class Compiler {
 public:
  Compiler(std::span<const Plan> plans, const RunShape& shape, const CostModel& model)
      : plans_(plans),
        model_(model),
        shape_(shape),
        n_segments_(static_cast<double>(n_segments(plans[0], shape))) {
    const int n_chunks = plans[0].n_chunks;
    begin_.reserve(static_cast<size_t>(n_chunks) + 1);
    for (int c = 0; c <= n_chunks; ++c)
      begin_.push_back(chunk_begin(shape.n_bytes / shape.element_bytes, c, n_chunks));
  }
  CompiledPlans run();

 private:
  void add_sends(const Plan& plan);
  void compile(const Plan& plan);
  double bytes(const Ref& ref) const;  // of one segment
  // The bytes of near memory that cost as much time as these.
  double near_bytes(const Ref& ref) const {
    const double n = bytes(ref);
    return model_.cache_bytes > 0 && n > model_.cache_bytes ? n * model_.far : n;
  }
  double work(const Step& step, Part part) const;
  double receive_work(const Step& step, const Message& message, Part part) const;

  std::span<const Plan> plans_;
  const CostModel& model_;
  RunShape shape_;
  CompiledPlans result_;
  double n_segments_;
  std::vector<size_t> begin_;               // by chunk, and the end: its first element
  std::vector<std::vector<int>> incoming_;  // by receiver: messages by sender, then order
  std::vector<int> next_;                   // by sender: its next message to the rank being compiled
};

CompiledPlans Compiler::run() {
  result_.entry = model_.round_overhead;
  incoming_.resize(plans_.size());
  for (const Plan& plan : plans_) add_sends(plan);
  int first_send = 0;
  for (const Plan& plan : plans_) {
    compile(plan);
    Program& program = result_.programs.back();
    for (Op& op : program.ops)
      if (op.kind == StepKind::kSend) op.message = first_send++;
  }
  return std::move(result_);
}

void Compiler::add_sends(const Plan& plan) {
  double sent = 0;
  int n_sends = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kSend) continue;
    const Link link = model_.link ? model_.link(plan.rank, step.peer) : Link{};
    const double n = bytes(step.src);
    const double transfer = link.receiver_reads ? 0 : link.alpha + n * link.beta;
    incoming_[static_cast<size_t>(step.peer)].push_back(static_cast<int>(result_.messages.size()));
    result_.messages.push_back({plan.rank, step.peer, transfer, link.receiver_reads});
    sent += n;
    ++n_sends;
  }
  const auto n_bytes = static_cast<size_t>(std::llround(sent * n_segments_));
  result_.totals.bytes_on_wire_per_rank = std::max(result_.totals.bytes_on_wire_per_rank, n_bytes);
  result_.totals.n_messages = std::max(result_.totals.n_messages, static_cast<int>(n_sends * n_segments_));
}

void Compiler::compile(const Plan& plan) {
  const std::vector<int>& incoming = incoming_[static_cast<size_t>(plan.rank)];
  next_.assign(plans_.size(), -1);
  for (int i = static_cast<int>(incoming.size()); i-- > 0;)
    next_[static_cast<size_t>(result_.messages[static_cast<size_t>(incoming[static_cast<size_t>(i)])].from)] =
        i;
  Program& program = result_.programs.emplace_back();
  program.ops.reserve(plan.steps.size());
  PartFinder part_of(plan.steps);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    while (program.round_begin.size() <= step.round) program.round_begin.push_back(i);
    const Part part = part_of(i);
    if (step.kind != StepKind::kRecv && step.kind != StepKind::kRecvReduce) {
      program.ops.push_back({step.kind, -1, work(step, part)});
      continue;
    }
    int& next = next_[static_cast<size_t>(step.peer)];
    TERN_CHECK(next >= 0 && next < static_cast<int>(incoming.size()));
    const int message = incoming[static_cast<size_t>(next++)];
    TERN_CHECK(result_.messages[static_cast<size_t>(message)].from == step.peer);
    program.ops.push_back(
        {step.kind, message, receive_work(step, result_.messages[static_cast<size_t>(message)], part)});
  }
  while (program.round_begin.size() <= static_cast<size_t>(plan.n_rounds))
    program.round_begin.push_back(plan.steps.size());
}

double Compiler::bytes(const Ref& ref) const {
  const double ratio = ref.buffer == Buffer::kWire ? model_.wire_ratio : 1;
  const auto first = static_cast<size_t>(ref.chunk);
  const size_t n_elements = begin_[first + static_cast<size_t>(ref.n_chunks)] - begin_[first];
  return static_cast<double>(n_elements * shape_.element_bytes) / n_segments_ * ratio;
}

double Compiler::work(const Step& step, Part part) const {
  const Work work = work_of(step, part, shape_.in_place);
  if (work == Work::kNone) return 0;
  const Ref& plain = work == Work::kDecode ? step.dst : step.src;
  return near_bytes(plain) * beta_of(work, model_);
}

double Compiler::receive_work(const Step& step, const Message& message, Part part) const {
  const Link link = message.receiver_reads ? model_.link(message.from, message.to) : Link{};
  const double farther = std::max(0.0, link.beta - model_.copy_beta);   // than this rank's own memory
  double beta = beta_of(work_of(step, part, shape_.in_place), model_);  // s per byte of a core
  if (step.kind == StepKind::kRecvReduce)
    beta += farther;
  else if (message.receiver_reads)
    beta = link.beta;
  return (message.receiver_reads ? link.alpha : 0) + near_bytes(step.dst) * beta;
}

}  // namespace

Work work_of(const Step& step, Part part, bool in_place) {
  switch (step.kind) {
    case StepKind::kSend:
      return Work::kNone;
    case StepKind::kRecv:
      return part == Part::kFirst ? Work::kCopy : Work::kNone;  // it landed beside the sum
    case StepKind::kCopy:
      return part == Part::kAlone && same_memory(step.src, step.dst, in_place) ? Work::kNone : Work::kCopy;
    case StepKind::kRecvReduce:
    case StepKind::kReduce:
      return part == Part::kFurther ? Work::kOperand : Work::kReduce;
    case StepKind::kEncode:
      return Work::kEncode;
    case StepKind::kDecode:
    case StepKind::kDecodeAccumulate:
      return Work::kDecode;
  }
  return Work::kNone;
}

double beta_of(Work work, const CostModel& model) {
  switch (work) {
    case Work::kNone:
      return 0;
    case Work::kCopy:
      return model.copy_beta;
    case Work::kReduce:
      return model.reduce_beta;
    case Work::kOperand:
      return std::max(0.0, model.reduce_beta - model.copy_beta);
    case Work::kEncode:
      return model.encode_beta;
    case Work::kDecode:
      return model.decode_beta;
  }
  return 0;
}

CompiledPlans compile_plans(std::span<const Plan> plans, const RunShape& shape, const CostModel& model) {
  return Compiler(plans, shape, model).run();
}

double busiest_seconds(const CompiledPlans& compiled, const CostModel& model) {
  const size_t p = compiled.programs.size();
  std::vector<double> send_port(p, 0);
  std::vector<double> recv_port(p, 0);
  std::vector<double> node(p, 0);
  for (const Message& message : compiled.messages) {
    send_port[static_cast<size_t>(message.from)] += message.transfer;
    recv_port[static_cast<size_t>(message.to)] += message.transfer;
  }
  double busiest = 0;
  for (size_t r = 0; r < p; ++r) {
    double core = 0;
    for (const Op& op : compiled.programs[r].ops) core += op.cpu;
    busiest = std::max({busiest, send_port[r], recv_port[r], core});
    if (!model.node_of) continue;
    const auto n = static_cast<size_t>(model.node_of(static_cast<int>(r)));
    if (n >= node.size()) node.resize(n + 1, 0);
    node[n] += core;
    busiest = std::max(busiest, node[n] / std::max(1, model.cores_per_node));
  }
  return busiest;
}

}  // namespace tern::simulation
