#include "tools/sim_choice.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "runtime/base/size.h"
#include "runtime/plan/compose.h"
#include "runtime/plan/hierarchical.h"
#include "runtime/plan/select.h"

namespace tern::tools {
namespace {

using simulation::FoldedPlans;

/// A way to run the call, cut and coded in several ways.
struct Option {
  std::string name;
  bool encoded = false;
  std::function<Result<Plan>(int rank)> plan_of;
  std::optional<Plan> first;            // rank 0's
  std::unique_ptr<FoldedPlans> folded;  // once it was simulated
};

struct Try {
  size_t option;
  ClusterCall call;
  CodecSpec codec;
  double least;  // s
};

/// Groups of `size` neighbours each.
Groups groups_of(const Cluster& cluster, int size) {
  std::vector<int> group_of;
  for (int rank = 0; rank < cluster.n_ranks; ++rank) group_of.push_back(rank / size);
  return Groups(group_of);
}

constexpr int kSmallGroup = 64;

// NOLINTNEXTLINE(readability-function-size): one loop for each choice
void add_two_levels(const SimQuestion& q, bool encoded, std::vector<Option>& options) {
  const Cluster& cluster = q.cluster;
  for (int level = 0; level < cluster.n_levels(); ++level) {
    const int group = cluster.ranks_in(level);
    if (group == 1 || group >= cluster.n_ranks || cluster.n_ranks % group != 0) continue;
    // Shared by the options of this level, each of which is a closure that is copied.
    const auto groups = std::make_shared<const Groups>(groups_of(cluster, group));
    for (const char* within : {"direct", "ring"}) {
      // A ring only saves messages, of which a small group has few.
      if (within == std::string_view("ring") && group <= kSmallGroup) continue;
      for (const Algorithm& across : algorithms()) {
        // No two ranks of double trees over rails are alike: a thousand of them take a minute to simulate.
        if (across.name == "double_tree") continue;
        if (!across.supports({.collective = Collective::kAllReduce, .n_ranks = cluster.n_ranks / group}) ||
            (encoded && !across.can_encode()))
          continue;
        const Hierarchy parts{.within = *find_algorithm(within), .across = &across, .encode_across = encoded};
        options.push_back({fmt::format("two_level({}, {}, {})", group, within, across.name),
                           encoded,
                           [&cluster, groups, parts](int rank) {
                             return hierarchical_all_reduce({.rank = rank, .n_ranks = cluster.n_ranks},
                                                            *groups, parts);
                           },
                           {},
                           {}});
      }
    }
  }
}

int group_size(const SimQuestion& q) {
  return q.groups.size > 0 ? q.groups.size : q.cluster.n_ranks;
}

// The plan of a world's rank that calls among its group.
Result<Plan> in_group(const SimQuestion& q, const CandidateQuery& query, const Algorithm& algorithm,
                      int rank) {
  const int stride = q.groups.stride;
  TERN_ASSIGN(const Plan plan, make_plan(query, algorithm, rank / stride % query.n_ranks));
  if (query.n_ranks == q.cluster.n_ranks) return plan;
  const int span = stride * query.n_ranks;
  std::vector<int> members;
  for (int i = 0; i < query.n_ranks; ++i) members.push_back(rank / span * span + rank % stride + i * stride);
  return on_group(plan, members, q.cluster.n_ranks);
}

// The innermost group of more than one rank that each of a call's ranks is in, numbered from 0: what plans
// call hosts. Empty: there are none, or only one.
std::vector<int> hosts_of(const SimQuestion& q) {
  const Cluster& cluster = q.cluster;
  int level = 0;
  while (level < cluster.n_levels() && cluster.ranks_in(level) == 1) ++level;
  std::vector<int> hosts;
  for (int i = 0; i < group_size(q); ++i) hosts.push_back(i * q.groups.stride / cluster.ranks_in(level));
  if (hosts.back() == 0 || q.groups.stride >= cluster.ranks_in(level)) return {};
  return hosts;
}

CandidateQuery query_of(const SimQuestion& q, std::span<const int> hosts, bool encoded) {
  return {.collective = q.collective,
          .n_ranks = group_size(q),
          .root = q.root,
          .elt = q.elt,
          .encoded = encoded,
          .node_of = hosts};
}

// hosts: hosts_of(q); lives as long as the options.
std::vector<Option> options_of(const SimQuestion& q, std::span<const int> hosts, bool encoded) {
  std::vector<Option> options;
  const CandidateQuery query = query_of(q, hosts, encoded);
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.supports(
            {.collective = q.collective, .n_ranks = query.n_ranks, .root = q.root, .node_of = hosts}) ||
        (encoded && !algorithm.can_encode()))
      continue;
    options.push_back({std::string(algorithm.name),
                       encoded,
                       [&q, query, &algorithm](int rank) { return in_group(q, query, algorithm, rank); },
                       {},
                       {}});
  }
  const bool is_whole = group_size(q) == q.cluster.n_ranks;
  if (q.collective == Collective::kAllReduce && is_whole) add_two_levels(q, encoded, options);
  return options;
}

Result<std::vector<CodecSpec>> codecs_of(const SimQuestion& q) {
  TERN_ASSIGN(const CodecChoice choice, parse_codec_choice(q.codec));
  if (!choice.is_automatic) return std::vector<CodecSpec>{choice.spec};
  std::vector<CodecSpec> specs = {CodecSpec()};
  if (q.collective == Collective::kBarrier) return specs;
  for (const CodecSpec& spec : allowed_codecs(choice.max_loss_gap, /*has_residual=*/true, q.elt))
    specs.push_back(spec);
  return specs;
}

struct Named {
  std::string algorithm;  // "": any
  std::optional<size_t> segment_bytes;
};

Result<Named> named(const SimQuestion& q) {
  if (q.algorithm == "auto" || q.algorithm.empty()) return Named{};
  const size_t at = q.algorithm.find('@');
  Named named{q.algorithm.substr(0, at), {}};
  if (at != std::string::npos) {
    TERN_ASSIGN(const uint64_t n, parse_size(q.algorithm.substr(at + 1)));
    named.segment_bytes = n;
  }
  const std::vector<std::string> known = algorithm_names(q);
  if (std::find(known.begin(), known.end(), named.algorithm) == known.end())
    return error(Code::kInvalidArgument, "no algorithm \"{}\" for {} over {} ranks; there are auto, {}",
                 named.algorithm, name(q.collective), group_size(q), fmt::join(known, ", "));
  return named;
}

double wire_ratio(const CodecSpec& codec, size_t elt) {
  if (codec.id == CodecId::kNone) return 1;
  return info(codec.id).bits_per_element(codec, elt) / (8.0 * static_cast<double>(elt));
}

/// The search: all candidates by their least time, simulated until no other can be faster.
class Search {
 public:
  Search(const SimQuestion& question, Named only)
      : q_(question), only_(std::move(only)), hosts_(hosts_of(question)) {}
  Result<SimChoice> run();

 private:
  Status add(const CodecSpec& codec);
  Status add_tries(size_t option, const CodecSpec& codec);
  Status simulate_one(const Try& t);
  bool encodes(const CodecSpec& codec) const { return codec.id != CodecId::kNone; }

  const SimQuestion& q_;
  Named only_;
  std::vector<int> hosts_;
  std::vector<Option> options_;
  std::vector<Try> tries_;
  SimChoice best_;
  Status last_error_;
};

Status Search::add(const CodecSpec& codec) {
  const auto matches = [&](const Option& option) { return option.encoded == encodes(codec); };
  if (std::none_of(options_.begin(), options_.end(), matches)) {
    for (Option& option : options_of(q_, hosts_, encodes(codec)))
      if (only_.algorithm.empty() || option.name == only_.algorithm) options_.push_back(std::move(option));
  }
  for (size_t i = 0; i < options_.size(); ++i)
    if (matches(options_[i])) TERN_TRY(add_tries(i, codec));
  return {};
}

Status Search::add_tries(size_t idx, const CodecSpec& codec) {
  Option& option = options_[idx];
  if (!option.first) {
    Result<Plan> plan = option.plan_of(0);
    if (!plan.ok()) {
      last_error_ = plan.status();
      return {};
    }
    option.first = std::move(plan).value();
  }
  constexpr size_t kMostSegments = 1024;
  size_t last = 0;
  for (const size_t segment : kSegmentSizes) {
    if (only_.segment_bytes && segment != kSegmentSizes.front()) break;
    const size_t used = only_.segment_bytes.value_or(segment);
    const size_t n = n_segments(*option.first, {q_.n_bytes, used});
    if (!only_.segment_bytes && (n == last || n > kMostSegments)) continue;
    last = n;
    const ClusterCall call{q_.n_bytes, used, wire_ratio(codec, q_.elt)};
    tries_.push_back({idx, call, codec, least_seconds(*option.first, call, q_.cluster)});
  }
  return {};
}

Status Search::simulate_one(const Try& t) {
  Option& option = options_[t.option];
  if (option.folded == nullptr) {
    Result<FoldedPlans> folded = simulation::fold(q_.cluster, {.plan_of = option.plan_of});
    if (!folded.ok()) {
      option.plan_of = nullptr;
      return folded.status();
    }
    option.folded = std::make_unique<FoldedPlans>(std::move(folded).value());
  }
  ++best_.n_simulated;
  const ClusterPrediction prediction = simulate(*option.folded, t.call, q_.cluster);
  if (!best_.algorithm.empty() && prediction.call.seconds >= best_.prediction.call.seconds) return {};
  best_.algorithm = option.name;
  best_.segment_bytes = t.call.segment_bytes;
  best_.codec = t.codec;
  best_.prediction = prediction;
  return {};
}

Result<SimChoice> Search::run() {
  TERN_ASSIGN(const std::vector<CodecSpec> specs, codecs_of(q_));
  for (const CodecSpec& codec : specs) TERN_TRY(add(codec));
  std::stable_sort(tries_.begin(), tries_.end(),
                   [](const Try& a, const Try& b) { return a.least < b.least; });
  for (const Try& t : tries_) {
    if (!best_.algorithm.empty() && t.least >= best_.prediction.call.seconds) break;
    if (options_[t.option].plan_of == nullptr) continue;
    if (const Status status = simulate_one(t); !status.ok()) last_error_ = status;
  }
  best_.n_candidates = static_cast<int>(tries_.size());
  if (!best_.algorithm.empty()) return best_;
  TERN_TRY(last_error_);
  return error(Code::kUnsupported, "no algorithm has {} over {} ranks with codec {}", name(q_.collective),
               group_size(q_), q_.codec);
}

}  // namespace

std::vector<std::string> algorithm_names(const SimQuestion& question) {
  std::vector<std::string> names;
  const std::vector<int> hosts = hosts_of(question);
  for (const Option& option : options_of(question, hosts, false)) names.push_back(option.name);
  return names;
}

Result<SimChoice> fastest_on(const SimQuestion& question) {
  const int size = group_size(question);
  if (question.root < 0 || question.root >= size)
    return error(Code::kInvalidArgument, "root {} is not a rank of {}", question.root, size);
  if (question.cluster.n_ranks % (size * question.groups.stride) != 0)
    return error(Code::kInvalidArgument, "{} ranks are not groups of {} that are {} apart",
                 question.cluster.n_ranks, size, question.groups.stride);
  TERN_ASSIGN(Named only, named(question));
  return Search(question, std::move(only)).run();
}

}  // namespace tern::tools
