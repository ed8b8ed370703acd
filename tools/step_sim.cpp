#include "tools/step_sim.h"

#include <algorithm>
#include <array>

#include "tools/sim_choice.h"
#include "tools/text_table.h"

namespace tern::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBuckets = 64;
constexpr double kForwardShare = 1.0 / 3;  // of a micro-batch's operations; backward has the rest
constexpr size_t kParamBytes = 2;          // parameters are gathered in bf16

const std::array<StepModel, 2>& models() {
  static const std::array<StepModel, 2> kModels = {
      {{"llama3-70b", 70.6e9, 70.6e9, 8, 4194304, 4, 0.40,
        "70.6 G parameters, 4 M tokens per step (Llama 3 report, 2024, first stage); split over the 8 ranks "
        "of a "
        "node because bf16 parameters and gradients of 282 GB do not fit one; utilisation as that report's "
        "38 to "
        "43 %"},
       {"deepseek-moe-16b", 16.4e9, 2.8e9, 1, 18874368, 4, 0.30,
        "16.4 G parameters, 2.8 G active per token, 4608 sequences of 4096 tokens (DeepSeekMoE, 2024); every "
        "rank "
        "holds all experts; utilisation assumed"}}};
  return kModels;
}

/// One level that gradients and parameters go through.
struct Level {
  std::string name;
  SimGroups groups;
  double n_elements = 0;  ///< of a rank's vector at this level
};

/// What a variant does, and what comes of it.
struct Variant {
  std::string name;
  std::string codec;  // of gradients between nodes
  bool overlaps = false;
  double reduce = 0, gather = 0;  // s, all of it one after the other
  double exposed = 0;             // s
  std::string how;
};

std::vector<Level> levels_of(const StepQuestion& q) {
  const int per_node = q.cluster.ranks_in(std::min(1, q.cluster.n_levels() - 1));
  const int n_nodes = q.cluster.n_ranks / per_node;
  const double n = q.model.n_params / q.model.tensor_parallel;
  std::vector<Level> levels;
  const int inside = per_node / q.model.tensor_parallel;
  if (inside > 1) levels.push_back({"inside nodes", {inside, q.model.tensor_parallel}, n});
  if (n_nodes > 1) levels.push_back({"between nodes", {n_nodes, per_node}, n / inside});
  return levels;
}

Status check(const StepQuestion& q) {
  const int per_node = q.cluster.ranks_in(std::min(1, q.cluster.n_levels() - 1));
  if (per_node % q.model.tensor_parallel != 0 || q.cluster.n_ranks % per_node != 0 ||
      q.cluster.n_ranks == per_node)
    return error(Code::kInvalidArgument,
                 "{} needs two or more whole nodes of a multiple of {} ranks; {} has {} ranks in nodes of {}",
                 q.model.name, q.model.tensor_parallel, q.cluster.name, q.cluster.n_ranks, per_node);
  if (q.cluster.device.flops <= 0)
    return error(Code::kInvalidArgument, "the device of {} has no tflops, so a step's compute is not known",
                 q.cluster.name);
  return {};
}

/// What one call moves, and how.
struct Share {
  double n_elements;
  std::string codec;
};

Result<SimChoice> call(const StepQuestion& q, const Level& level, Collective collective, const Share& share) {
  const size_t elt = collective == Collective::kReduceScatter ? q.gradient_bytes : kParamBytes;
  return fastest_on({.cluster = q.cluster,
                     .groups = level.groups,
                     .collective = collective,
                     .n_bytes = static_cast<uint64_t>(share.n_elements) * elt,
                     .elt = elt,
                     .codec = share.codec});
}

/// Times of one phase (a reduction or a gathering), in `n_buckets` buckets.
Result<BucketTimes> times_of(const StepQuestion& q, Collective collective, int n_buckets, Variant& variant) {
  std::vector<Level> levels = levels_of(q);
  const bool reduces = collective == Collective::kReduceScatter;
  BucketTimes times{n_buckets, {}};
  for (const Level& level : levels) {
    const bool between = &level == &levels.back();
    TERN_ASSIGN(const SimChoice choice,
                call(q, level, collective,
                     {level.n_elements / n_buckets, reduces && between ? variant.codec : "none"}));
    times.stages.push_back(choice.prediction.call.seconds);
    variant.how +=
        fmt::format("{}{} {}{}", variant.how.empty() ? "" : ", ", reduces ? "reduce" : "gather",
                    choice.algorithm, choice.codec.id == CodecId::kNone ? "" : " " + to_string(choice.codec));
  }
  if (!reduces) std::reverse(times.stages.begin(), times.stages.end());
  return times;
}

double all_in_turn(const BucketTimes& times) {
  double seconds = 0;
  for (const double s : times.stages) seconds += s;
  return seconds * times.n_buckets;
}

double compute_seconds(const StepQuestion& q) {
  return 6 * q.model.n_active_params * q.model.tokens_per_step /
         (q.cluster.n_ranks * q.cluster.device.flops * q.model.utilisation);
}

Status run(const StepQuestion& q, Variant& variant) {
  const int n_buckets = variant.overlaps ? kBuckets : 1;
  TERN_ASSIGN(const BucketTimes reduce, times_of(q, Collective::kReduceScatter, n_buckets, variant));
  TERN_ASSIGN(const BucketTimes gather, times_of(q, Collective::kAllGather, n_buckets, variant));
  variant.reduce = all_in_turn(reduce);
  variant.gather = all_in_turn(gather);
  variant.exposed = variant.reduce + variant.gather;
  if (!variant.overlaps) return {};
  const double micro_batch = compute_seconds(q) / q.model.n_micro_batches;
  variant.exposed = exposed_after(micro_batch * (1 - kForwardShare), reduce) +
                    exposed_before(micro_batch * kForwardShare, gather);
  return {};
}

std::string assumptions(const StepQuestion& q) {
  const StepModel& m = q.model;
  const int n_copies = q.cluster.n_ranks / m.tensor_parallel;
  return fmt::format(
      "{}, {} ranks of {} on {}: {:.1f} G parameters ({:.1f} G active), {} copies of the model, each over {} "
      "rank{}.\n"
      "Step: {:.0f} tokens ({:.0f} per rank) in {} micro-batches, 6 operations per active parameter and "
      "token at "
      "{:.0f} % of {:.0f} TFLOPS: {:.3f} s of compute, a third of it forward.\n"
      "ZeRO-2: gradients ({} byte dense) are reduce-scattered once per step, parameters gathered in bf16. "
      "Overlap: "
      "{} buckets, beside the last micro-batch's backward and the next step's first forward; compute is not "
      "slowed "
      "by it. Optimiser, data and stragglers take no time.\n"
      "Model: {}.\nCluster: {}\n",
      m.name, q.cluster.n_ranks, q.cluster.device.name, q.cluster.name, m.n_params / 1e9,
      m.n_active_params / 1e9, n_copies, m.tensor_parallel, m.tensor_parallel == 1 ? "" : "s",
      m.tokens_per_step, m.tokens_per_step / q.cluster.n_ranks, m.n_micro_batches, 100 * m.utilisation,
      q.cluster.device.flops / 1e12, compute_seconds(q), q.gradient_bytes, kBuckets, m.source,
      q.cluster.source);
}

/// When the last bucket has gone through all stages, given when each is ready; calls there(i, when).
template <class Ready, class There>
void pipeline(const BucketTimes& times, Ready ready, There there) {
  std::vector<double> free(times.stages.size(), 0);
  for (int i = 0; i < times.n_buckets; ++i) {
    double now = ready(i);
    for (size_t s = 0; s < times.stages.size(); ++s) now = free[s] = std::max(now, free[s]) + times.stages[s];
    there(i, now);
  }
}

}  // namespace

double exposed_after(double compute, const BucketTimes& times) {
  double end = compute;
  pipeline(
      times, [&](int i) { return compute * (i + 1) / times.n_buckets; },
      [&](int, double now) { end = std::max(end, now); });
  return end - compute;
}

double exposed_before(double compute, const BucketTimes& times) {
  double end = 0;
  pipeline(
      times, [](int) { return 0.0; },
      [&](int, double now) { end = std::max(end, now) + compute / times.n_buckets; });
  return end - compute;
}

Result<StepModel> find_step_model(const std::string& name) {
  for (const StepModel& model : models())
    if (model.name == name) return model;
  return error(Code::kInvalidArgument, "no model \"{}\"; there are {}", name, step_model_names());
}

std::string step_model_names() {
  std::string names;
  for (const StepModel& model : models()) names += (names.empty() ? "" : ", ") + model.name;
  return names;
}

Result<Report> step_report(const StepQuestion& q) {
  TERN_TRY(check(q));
  std::array<Variant, 4> variants = {{{"dense, no overlap", "none", false},
                                      {"dense, overlap", "none", true},
                                      {"codec, no overlap", "auto", false},
                                      {"codec, overlap", "auto", true}}};
  const double compute = compute_seconds(q);
  Report report;
  report.text = assumptions(q) + "\n";
  report.data = {
      {"model", q.model.name},        {"cluster", q.cluster.name},          {"ranks", q.cluster.n_ranks},
      {"compute_seconds", compute},   {"gradient_bytes", q.gradient_bytes}, {"buckets", kBuckets},
      {"assumptions", assumptions(q)}};
  report.text +=
      "| variant | reduce s | gather s | exposed s | step s | communication | less time | plans |\n"
      "|---|---|---|---|---|---|---|---|\n";
  double first = 0;
  for (Variant& v : variants) {
    TERN_TRY(run(q, v));
    const double step = compute + v.exposed;
    if (first == 0) first = step;
    report.data["variants"].push_back({{"name", v.name},
                                       {"reduce_seconds", v.reduce},
                                       {"gather_seconds", v.gather},
                                       {"exposed_seconds", v.exposed},
                                       {"step_seconds", step},
                                       {"communication_share", v.exposed / step},
                                       {"less_time", 1 - step / first},
                                       {"plans", v.how}});
    report.text += fmt::format("| {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.1f} % | {:.1f} % | {} |\n",
                               v.name, v.reduce, v.gather, v.exposed, step, 100 * v.exposed / step,
                               100 * (1 - step / first), v.how);
  }
  return report;
}

}  // namespace tern::tools
