#include "tools/tern_plan.h"

#include <algorithm>

#include "runtime/communicator/cost.h"
#include "runtime/communicator/planner.h"
#include "runtime/plan/compose.h"
#include "runtime/plan/select.h"
#include "runtime/plan/verify.h"
#include "runtime/topology/cores.h"
#include "tools/call_text.h"
#include "tools/text_table.h"

namespace tern::tools {
namespace {

using Json = nlohmann::ordered_json;

/// A world that is only thought of, for the cost model to look at.
World imagine(const PlanQuestion& q, const Config& config) {
  World world;
  world.size = q.n_ranks;
  world.config = config;
  for (int r = 0; r < q.n_ranks; ++r)
    world.host_ids.push_back(fmt::format("host{}", static_cast<int64_t>(r) * q.n_hosts / q.n_ranks));
  world.host_id = world.host_ids.front();
  world.local_size =
      static_cast<int>(std::count(world.host_ids.begin(), world.host_ids.end(), world.host_id));
  return world;
}

/// hosts: see hosts_of(); outlives the query.
CandidateQuery query_of(const PlanQuestion& q, std::span<const int> hosts) {
  return {.collective = q.collective,
          .n_ranks = q.n_ranks,
          .root = q.root,
          .n_bytes = q.n_bytes,
          .elt = sizeof(float),
          .encoded = !q.codec.is_dense(),
          .node_of = hosts};
}

Result<CostModel> model_of(const PlanQuestion& q, const Config& config) {
  const World world = imagine(q, config);
  TERN_ASSIGN(const Calibration speeds, calibration_of(config));
  // As if every host were this machine.
  const std::vector<int> cores(static_cast<size_t>(q.n_ranks), usable_cores());
  CostModel model = cost_model(world, world.all_ranks(), cores, speeds);
  if (q.codec.is_dense()) return model;
  return encoded_model(std::move(model), q.codec.spec, sizeof(float), speeds.codecs);
}

Status check(const PlanQuestion& q) {
  if (q.root >= q.n_ranks)
    return error(Code::kInvalidArgument, "--root {} is not a rank of a world of {}", q.root, q.n_ranks);
  if (q.rank >= q.n_ranks)
    return error(Code::kInvalidArgument, "--rank {} is not a rank of a world of {}", q.rank, q.n_ranks);
  if (q.n_hosts > q.n_ranks)
    return error(Code::kInvalidArgument, "--hosts {} is more than --ranks {}", q.n_hosts, q.n_ranks);
  return {};
}

Status check_size(const PlanQuestion& q, int most, std::string_view work) {
  if (q.n_ranks <= most) return {};
  return error(Code::kInvalidArgument,
               "--ranks {} is above {}: {}, and beyond that it takes minutes and gigabytes", q.n_ranks, most,
               work);
}

/// --algorithm where it is rules, else TERN_ALGORITHM.
Result<AlgorithmRules> rules_of(const PlanQuestion& q, const Config& config) {
  return parse_algorithm_rules(is_rules(q.algorithm) ? q.algorithm : config.algorithm);
}

/// The one algorithm that --algorithm names; "": none.
std::string_view name_in(const PlanQuestion& q) {
  return is_rules(q.algorithm) ? std::string_view() : std::string_view(q.algorithm);
}

/// The same with the codec that auto takes, and how it came to that.
struct Settled {
  PlanQuestion question;
  CodecVerdict verdict;
  std::vector<std::pair<CodecSpec, Decision>> candidates;
};

Result<Settled> settle(const PlanQuestion& q, const Config& config) {
  Settled settled{.question = q};
  if (!q.codec.is_automatic) return settled;
  TERN_TRY(check(q));
  settled.question.codec = CodecSpec();
  if (!encodes_by_default(q.collective)) {
    settled.verdict.reason = CodecReason::kNotEncodable;
    return settled;
  }
  TERN_ASSIGN(CostModel model, model_of(settled.question, config));
  TERN_ASSIGN(const Calibration speeds, calibration_of(config));
  TERN_ASSIGN(AlgorithmRules rules, rules_of(q, config));
  Planner planner(
      {.n_ranks = q.n_ranks, .model = std::move(model), .rules = std::move(rules), .codecs = speeds.codecs});
  Shape shape{.collective = q.collective, .n_bytes = q.n_bytes, .elt = sizeof(float)};
  shape.algorithm = name_in(q);
  const CodecQuestion question{q.codec.max_loss_gap, q.has_residual, q.hidden_seconds};
  TERN_ASSIGN(settled.verdict, planner.weigh_codecs(shape, question));
  TERN_ASSIGN(const auto candidates, planner.codec_candidates(shape, question));
  for (const auto& [codec, decision] : candidates) settled.candidates.emplace_back(codec, *decision);
  settled.question.codec = settled.verdict.codec;
  return settled;
}

void add_codecs(Report& report, const PlanQuestion& q, const Settled& settled) {
  const CodecVerdict& verdict = settled.verdict;
  const auto exposed = [&](double seconds) { return std::max(0.0, seconds - q.hidden_seconds) * 1e6; };
  const auto micros = [](double us) { return fmt::format("{:.2f}", us); };
  std::vector<std::vector<std::string>> rows = {
      {"", "codec", "bits/element", "loss gap %", "algorithm", "predicted us", "exposed us"}};
  report.data["codecs"] = Json::array();
  if (verdict.dense_seconds > 0)
    rows.push_back({verdict.codec.id == CodecId::kNone ? "*" : "", "none", "32.00", "0", "",
                    micros(verdict.dense_seconds * 1e6), micros(exposed(verdict.dense_seconds))});
  for (const auto& [codec, decision] : settled.candidates) {
    const CodecInfo& row = info(codec.id);
    const double gap = loss_gap(row, q.has_residual);
    const double bits = row.bits_per_element(codec, sizeof(float));
    rows.push_back({codec == verdict.codec ? "*" : "", to_string(codec), micros(bits), fmt::format("{}", gap),
                    std::string(decision.algorithm), micros(decision.predicted_seconds * 1e6),
                    micros(exposed(decision.predicted_seconds))});
    report.data["codecs"].push_back({{"codec", to_string(codec)},
                                     {"bits_per_element", bits},
                                     {"loss_gap_percent", gap},
                                     {"algorithm", decision.algorithm},
                                     {"predicted_us", decision.predicted_seconds * 1e6},
                                     {"exposed_us", exposed(decision.predicted_seconds)}});
  }
  report.data["codec_reason"] = name(verdict.reason);
  report.data["dense_us"] = verdict.dense_seconds * 1e6;
  report.text += text_table(rows);
  report.text += fmt::format("\n* codec {}: {}; encoded pays below {} of the dense call's exposed time\n\n",
                             to_string(verdict.codec), name(verdict.reason), kWorthEncoding);
}

/// What would run: under --algorithm, else under TERN_ALGORITHM, else the fastest.
Result<Candidate> choice_for(const PlanQuestion& q, const Config& config) {
  TERN_TRY(check(q));
  TERN_ASSIGN(const AlgorithmRules rules, rules_of(q, config));
  TERN_ASSIGN(const CostModel model, model_of(q, config));
  const std::vector<int> hosts = hosts_of(model, q.n_ranks);
  CandidateQuery query = query_of(q, hosts);
  query.only = name_in(q).empty() ? rules.find(q.collective, q.n_bytes) : name_in(q);
  return fastest_candidate(query, model);
}

std::string question_text(const PlanQuestion& q) {
  return fmt::format("{} over {} rank{} on {} host{}, codec {}", call_text(q.collective, q.n_bytes),
                     q.n_ranks, q.n_ranks == 1 ? "" : "s", q.n_hosts, q.n_hosts == 1 ? "" : "s",
                     to_string(q.codec));
}

Json question_json(const PlanQuestion& q) {
  return {{"collective", name(q.collective)},
          {"ranks", q.n_ranks},
          {"hosts", q.n_hosts},
          {"root", q.root},
          {"bytes", q.n_bytes},
          {"codec", to_string(q.codec)}};
}

std::string speed_text(double beta) {
  return beta > 0 ? fmt::format("{:.1f} GB/s", 1e-9 / beta) : "free";
}

/// The kinds of link that rank 0 has: to a rank of its host and to one of another.
std::vector<std::pair<std::string, Link>> links_of(const CostModel& model, int n_ranks) {
  std::vector<std::pair<std::string, Link>> links;
  bool near = false;
  bool far = false;
  for (int r = 1; r < n_ranks; ++r) {
    const bool together = model.node_of(r) == model.node_of(0);
    bool& seen = together ? near : far;
    if (!seen) links.emplace_back(together ? "link in the host" : "link between hosts", model.link(0, r));
    seen = true;
  }
  return links;
}

void add_model(Report& report, const PlanQuestion& q, const CostModel& model) {
  std::vector<std::vector<std::string>> rows = {{"Cost model", ""}};
  Json& data = report.data["cost_model"];
  data["links"] = Json::array();
  for (const auto& [what, link] : links_of(model, q.n_ranks)) {
    rows.push_back(
        {fmt::format("  {}", what), fmt::format("{:.2f} us + {}{}", link.alpha * 1e6, speed_text(link.beta),
                                                link.receiver_reads ? ", read by the receiver" : "")});
    data["links"].push_back({{"name", what},
                             {"alpha_us", link.alpha * 1e6},
                             {"beta_s_per_byte", link.beta},
                             {"receiver_reads", link.receiver_reads}});
  }
  const auto speed = [&](const char* what, const char* key, double beta) {
    rows.push_back({fmt::format("  {}", what), speed_text(beta)});
    data[key] = beta;
  };
  speed("reduce", "reduce_s_per_byte", model.reduce_beta);
  speed("copy", "copy_s_per_byte", model.copy_beta);
  if (!q.codec.is_dense()) {
    speed("encode", "encode_s_per_byte", model.encode_beta);
    speed("decode", "decode_s_per_byte", model.decode_beta);
    rows.push_back({"  bytes on the wire", fmt::format("{:.4f} of the dense bytes", model.wire_ratio)});
    data["wire_ratio"] = model.wire_ratio;
  }
  rows.push_back({"  cores per host", fmt::format("{}", model.cores_per_node)});
  rows.push_back({"  each round and segment", fmt::format("{:.2f} us", model.round_overhead * 1e6)});
  data["cores_per_host"] = model.cores_per_node;
  data["round_overhead_us"] = model.round_overhead * 1e6;
  report.text += text_table(rows);
}

bool same(const Candidate& a, const Candidate& b) {
  return a.algorithm == b.algorithm && a.segment_bytes == b.segment_bytes;
}

void add_candidates(Report& report, std::span<const Candidate> candidates, const Candidate& chosen) {
  std::vector<std::vector<std::string>> rows = {
      {"", "algorithm", "segment", "predicted us", "sent bytes/rank", "messages/rank"}};
  report.data["candidates"] = Json::array();
  for (const Candidate& c : candidates) {
    report.data["candidates"].push_back({{"algorithm", c.algorithm->name},
                                         {"segment_bytes", c.segment_bytes},
                                         {"predicted_us", c.prediction.seconds * 1e6},
                                         {"bytes_on_wire_per_rank", c.prediction.bytes_on_wire_per_rank},
                                         {"messages", c.prediction.n_messages},
                                         {"chosen", same(c, chosen)}});
    rows.push_back({same(c, chosen) ? "*" : "", std::string(c.algorithm->name), segment_text(c.segment_bytes),
                    fmt::format("{:.2f}", c.prediction.seconds * 1e6),
                    fmt::format("{}", c.prediction.bytes_on_wire_per_rank),
                    fmt::format("{}", c.prediction.n_messages)});
  }
  report.text += text_table(rows);
}

}  // namespace

Result<Report> plan_report(const PlanQuestion& asked, const Config& config) {
  TERN_TRY(check_size(asked, kMostRanksToShow, "the plans of all ranks are verified together"));
  TERN_ASSIGN(const Settled settled, settle(asked, config));
  const PlanQuestion& q = settled.question;
  TERN_ASSIGN(const Candidate chosen, choice_for(q, config));
  TERN_ASSIGN(const CostModel model, model_of(q, config));
  const std::vector<int> hosts = hosts_of(model, q.n_ranks);
  TERN_ASSIGN(const std::vector<Plan> plans, make_plans(query_of(q, hosts), *chosen.algorithm));
  TERN_TRY(verify(plans));
  Report report;
  report.data = question_json(q);
  report.data["algorithm"] = chosen.algorithm->name;
  report.data["verified"] = true;
  report.text = fmt::format("{}: {}, verified on all ranks\n", question_text(q), chosen.algorithm->name);
  report.data["plans"] = Json::array();
  for (const Plan& plan : plans) {
    if (q.rank >= 0 && plan.rank != q.rank) continue;
    Json steps = Json::array();
    for (const Step& step : plan.steps) steps.push_back({{"round", step.round}, {"step", to_string(step)}});
    report.data["plans"].push_back({{"rank", plan.rank},
                                    {"chunks", plan.n_chunks},
                                    {"scratch", plan.n_scratch},
                                    {"wire", plan.n_wire},
                                    {"rounds", plan.n_rounds},
                                    {"steps", steps}});
    report.text += fmt::format("\n{}", to_string(plan));
    if (!report.text.ends_with('\n')) report.text += "\n";
  }
  return report;
}

Result<Report> why_report(const PlanQuestion& asked, const Config& config) {
  TERN_TRY(check_size(asked, kMostRanksToPrice, "every candidate is priced message by message"));
  TERN_ASSIGN(const Settled settled, settle(asked, config));
  const PlanQuestion& q = settled.question;
  TERN_ASSIGN(const Candidate chosen, choice_for(q, config));
  TERN_ASSIGN(const CostModel model, model_of(q, config));
  const std::vector<int> hosts = hosts_of(model, q.n_ranks);
  TERN_ASSIGN(std::vector<Candidate> candidates, rank_candidates(query_of(q, hosts), model));
  const bool listed =
      std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) { return same(c, chosen); });
  if (!listed) candidates.push_back(chosen);  // a rule may cut segments as the planner would not
  Report report;
  report.data = question_json(q);
  report.text = question_text(asked) + "\n\n";
  if (asked.codec.is_automatic) add_codecs(report, asked, settled);
  add_model(report, q, model);
  report.text += "\n";
  add_candidates(report, candidates, chosen);
  const bool ruled = !same(chosen, candidates.front());
  report.data["reason"] = ruled ? "rule" : "least predicted time";
  report.text += fmt::format("\n* chosen: {}\n",
                             ruled ? "TERN_ALGORITHM or --algorithm says so" : "the least predicted time");
  if (config.segment_bytes > 0)
    report.text += fmt::format("  (TERN_SEGMENT_BYTES cuts chunks at {} whatever is chosen)\n",
                               size_text(config.segment_bytes));
  return report;
}

}  // namespace tern::tools
