#include "runtime/plan/simulate_fold.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace tern::simulation {
namespace {

// Two independent 64-bit hashes of a sequence of numbers (finaliser of SplitMix64, Steele et al. 2014).
struct Fingerprint {
  uint64_t a = 0x9e3779b97f4a7c15;
  uint64_t b = 0xd1b54a32d192ed03;

  Fingerprint& add(uint64_t value) {
    a = mix(a ^ value) + 0x632be59bd9b4e019;
    b = mix(b + value * 0x9fb21c651e98df25) ^ 0x8cb92ba72f3d8dd7;
    return *this;
  }
  Fingerprint& add(const Fingerprint& other) { return add(other.a).add(other.b); }
  /// Of multisets: does not depend on the order.
  void merge(const Fingerprint& other) {
    a += other.a;
    b += other.b;
  }
  bool operator==(const Fingerprint&) const = default;

 private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
};
struct FingerprintHash {
  size_t operator()(const Fingerprint& f) const { return f.a; }
};
using Indices = std::unordered_map<Fingerprint, int, FingerprintHash>;

// Numbers fingerprints in the order in which they come.
int index_of(Indices& indices, const Fingerprint& key) {
  return indices.emplace(key, static_cast<int>(indices.size())).first->second;
}

constexpr int64_t kMaxMessages = 6'000'000;  // of a simulation of every rank: about 1 GB
constexpr int64_t kCheapPass = 4'000'000;    // messages: a pass over the plans takes less than a second
constexpr int kManyPasses = 64;
constexpr int kFewPasses = 4;

// Colours of ranks and links, and their refinement.
class Colours {
 public:
  Colours(const Cluster& cluster, const FoldRequest& request)
      : cluster_(cluster), request_(request), n_ranks_(static_cast<size_t>(cluster.n_ranks)) {}

  /// Every rank and link its own.
  void tell_all_apart();
  /// A colouring that holds, or all told apart.
  Status find();

  int rank(int r) const { return ranks_[static_cast<size_t>(r)]; }
  int link(int l) const { return links_[static_cast<size_t>(l)]; }
  int n_of_ranks() const { return n_rank_colours_; }
  int n_of_links() const { return n_link_colours_; }
  /// What a rank sees of a message's way.
  Fingerprint of_path(const ClusterPath& path) const {
    Fingerprint f;
    f.add(std::bit_cast<uint64_t>(path.alpha));
    for (const int l : path.span()) f.add(static_cast<uint64_t>(link(l)));
    return f;
  }

 private:
  void start(int block);
  Result<bool> refine();  // whether nothing changed
  // The ways between the rank being read and a peer, found once per rank and pass.
  struct Ways {
    int rank = -1;
    ClusterPath out;
    Fingerprint seen_out, seen_in;
  };
  const Ways& ways(int rank, int peer);
  Fingerprint of_rank(int r);
  Fingerprint of_message(const RankRounds::Message& m, Fingerprint path) const;

  const Cluster& cluster_;
  const FoldRequest& request_;
  size_t n_ranks_;
  std::vector<int> ranks_, links_;  // colours
  int n_rank_colours_ = 0, n_link_colours_ = 0;
  std::vector<Fingerprint> on_link_;  // what passes it
  int64_t n_messages_ = 0;            // of the last pass
  RankRounds rounds_;
  std::vector<Fingerprint> phases_;
  std::vector<Ways> ways_;  // by peer
};

void Colours::tell_all_apart() {
  ranks_.resize(n_ranks_);
  links_.resize(static_cast<size_t>(cluster_.n_links()));
  for (size_t r = 0; r < ranks_.size(); ++r) ranks_[r] = static_cast<int>(r);
  for (size_t l = 0; l < links_.size(); ++l) links_[l] = static_cast<int>(l);
  n_rank_colours_ = static_cast<int>(ranks_.size());
  n_link_colours_ = static_cast<int>(links_.size());
}

// Blocks of neighbouring ranks are taken to be alike.
void Colours::start(int block) {
  Indices ranks;
  Indices links;
  ranks_.clear();
  links_.clear();
  for (int r = 0; r < cluster_.n_ranks; ++r)
    ranks_.push_back(index_of(ranks, Fingerprint().add(static_cast<uint64_t>(r % block))));
  for (int l = 0; l < cluster_.n_links(); ++l) {
    const int level = cluster_.level_of_link(l);
    const int n_groups = std::max(1, block / cluster_.ranks_in(level));
    const int place = cluster_.place_of_link(l) % (cluster_.links_per_group(level) * n_groups);
    const Fingerprint seen =
        Fingerprint().add(static_cast<uint64_t>(level)).add(static_cast<uint64_t>(place));
    links_.push_back(index_of(links, seen));
  }
  n_rank_colours_ = static_cast<int>(ranks.size());
  n_link_colours_ = static_cast<int>(links.size());
}

const Colours::Ways& Colours::ways(int rank, int peer) {
  Ways& w = ways_[static_cast<size_t>(peer)];
  if (w.rank == rank) return w;
  w.rank = rank;
  w.out = cluster_.path(rank, peer);
  w.seen_out = of_path(w.out);
  w.seen_in = of_path(cluster_.path(peer, rank));
  return w;
}

Fingerprint Colours::of_message(const RankRounds::Message& m, Fingerprint f) const {
  f.add(static_cast<uint64_t>(m.round) << 32 | static_cast<uint32_t>(m.n_chunks));
  f.add(static_cast<uint64_t>(rank(m.peer)) << 2 | (m.phase < 0 ? 2U : 0U) | (m.encoded ? 1U : 0U));
  return f;
}

Fingerprint Colours::of_rank(int r) {
  Fingerprint all;
  all.add(static_cast<uint64_t>(rank(r)));
  phases_.clear();
  for (const RankRounds::Phase& phase : rounds_.phases) {
    Fingerprint& f = phases_.emplace_back();
    f.add(static_cast<uint64_t>(phase.round));
    for (size_t w = 0; w < phase.work.size(); ++w)
      if (phase.work[w] > 0) f.add(w << 32 | static_cast<uint32_t>(phase.work[w]));
  }
  for (const RankRounds::Message& m : rounds_.messages) {
    const bool is_send = m.phase < 0;
    const Ways& w = ways(r, m.peer);
    Fingerprint f = of_message(m, is_send ? w.seen_out : w.seen_in);
    if (!is_send) {
      phases_[static_cast<size_t>(m.phase)].merge(f);
      continue;
    }
    all.merge(f);
    ++n_messages_;
    f.add(static_cast<uint64_t>(rank(r)));
    for (const int l : w.out.span()) on_link_[static_cast<size_t>(l)].merge(f);
  }
  for (const Fingerprint& phase : phases_) all.merge(Fingerprint().add(phase));
  return all;
}

Result<bool> Colours::refine() {
  Indices ranks;
  Indices links;
  std::vector<int> next;
  next.reserve(n_ranks_);
  on_link_.assign(links_.size(), {});
  n_messages_ = 0;
  ways_.assign(n_ranks_, {});
  for (int r = 0; r < cluster_.n_ranks; ++r) {
    TERN_ASSIGN(const Plan plan, request_.plan_of(r));
    rounds_.read(plan, request_.in_place, [&](int peer) { return ways(r, peer).out.alpha; });
    next.push_back(index_of(ranks, Fingerprint().add(of_rank(r))));
  }
  for (size_t l = 0; l < links_.size(); ++l)
    links_[l] = index_of(links, Fingerprint().add(on_link_[l]).add(static_cast<uint64_t>(links_[l])));
  ranks_ = std::move(next);
  const bool stable =
      n_rank_colours_ == static_cast<int>(ranks.size()) && n_link_colours_ == static_cast<int>(links.size());
  n_rank_colours_ = static_cast<int>(ranks.size());
  n_link_colours_ = static_cast<int>(links.size());
  return stable;
}

Status Colours::find() {
  int block = 0;
  for (int level = std::min(1, cluster_.n_levels() - 1); level < cluster_.n_levels(); ++level) {
    if (cluster_.ranks_in(level) >= cluster_.n_ranks || cluster_.ranks_in(level) == block) continue;
    block = cluster_.ranks_in(level);
    start(block);
    int n_passes = kFewPasses;
    for (int pass = 0; pass < n_passes && 2 * n_rank_colours_ <= cluster_.n_ranks; ++pass) {
      TERN_ASSIGN(const bool holds, refine());
      if (holds) return {};
      if (n_messages_ <= kCheapPass) n_passes = kManyPasses;
    }
  }
  if (n_messages_ > kMaxMessages)
    return error(
        Code::kUnsupported,
        "{} ranks exchange {} messages and are too little alike to be simulated together; at most {} "
        "messages are simulated one by one",
        cluster_.n_ranks, n_messages_, kMaxMessages);
  tell_all_apart();
  return {};
}

// The classes' programs, from one rank of each.
class Folder {
 public:
  Folder(const Cluster& cluster, const FoldRequest& request, const Colours& colours)
      : cluster_(cluster), request_(request), colours_(colours) {}
  Result<FoldedPlans> run();

 private:
  void count();
  void add_class(int rank);
  int path_of(const ClusterPath& path);
  int message_of(const RankRounds::Message& m, int rank);
  void add_round(FoldedPlans::Class& c, size_t first_phase, size_t end_phase);
  Status check() const;

  const Cluster& cluster_;
  const FoldRequest& request_;
  const Colours& colours_;
  FoldedPlans result_;
  Indices paths_, messages_;
  RankRounds rounds_;
  std::vector<std::vector<int>> waits_;  // by phase: its messages
  std::vector<bool> is_taken_;           // by message: an earlier phase of its round waits for it
};

void Folder::count() {
  result_.classes.resize(static_cast<size_t>(colours_.n_of_ranks()));
  for (int r = cluster_.n_ranks; r-- > 0;) {
    FoldedPlans::Class& c = result_.classes[static_cast<size_t>(colours_.rank(r))];
    ++c.n_ranks;
    c.example = r;
  }
  result_.links.resize(static_cast<size_t>(colours_.n_of_links()));
  for (int l = cluster_.n_links(); l-- > 0;) {
    FoldedPlans::LinkClass& c = result_.links[static_cast<size_t>(colours_.link(l))];
    ++c.n_links;
    c.example = l;
  }
}

int Folder::path_of(const ClusterPath& path) {
  const int idx = index_of(paths_, colours_.of_path(path));
  if (idx < static_cast<int>(result_.paths.size())) return idx;
  FoldedPlans::Path& p = result_.paths.emplace_back();
  p.alpha = path.alpha;
  p.level = path.level;
  for (const int l : path.span()) p.links.push_back(colours_.link(l));
  return idx;
}

int Folder::message_of(const RankRounds::Message& m, int rank) {
  const bool is_send = m.phase < 0;
  const int from = is_send ? rank : m.peer;
  const int to = is_send ? m.peer : rank;
  FoldedPlans::Message message{.from = colours_.rank(from),
                               .to = colours_.rank(to),
                               .path = path_of(cluster_.path(from, to)),
                               .round = m.round,
                               .n_chunks = m.n_chunks,
                               .encoded = m.encoded};
  Fingerprint key;
  for (const int part : {message.from, message.to, message.path, m.n_chunks, m.encoded ? 1 : 0, m.round})
    key.add(static_cast<uint64_t>(part));
  const int idx = index_of(messages_, key);
  if (idx == static_cast<int>(result_.messages.size())) result_.messages.push_back(message);
  FoldedPlans::Message& merged = result_.messages[static_cast<size_t>(idx)];
  ++(is_send ? merged.n_per_sender : merged.n_per_receiver);
  return idx;
}

void Folder::add_class(int rank) {
  FoldedPlans::Class& c = result_.classes[static_cast<size_t>(colours_.rank(rank))];
  const int n_rounds = result_.frame.n_rounds;
  c.n_sends.assign(static_cast<size_t>(n_rounds), 0);
  waits_.assign(rounds_.phases.size(), {});
  size_t m = 0;
  size_t first = 0;
  for (int round = 0; round < n_rounds; ++round) {
    c.round_begin.push_back(c.ops.size());
    for (; m < rounds_.messages.size() && rounds_.messages[m].round == round; ++m) {
      const RankRounds::Message& message = rounds_.messages[m];
      const int idx = message_of(message, rank);
      if (message.phase >= 0) {
        waits_[static_cast<size_t>(message.phase)].push_back(idx);
        continue;
      }
      c.n_sends[static_cast<size_t>(round)]++;
      const bool is_first = result_.messages[static_cast<size_t>(idx)].n_per_sender == 1;
      if (is_first) c.ops.push_back({.kind = StepKind::kSend, .message = idx});
    }
    size_t end = first;
    while (end < rounds_.phases.size() && rounds_.phases[end].round == round) ++end;
    add_round(c, first, end);
    first = end;
  }
  c.round_begin.push_back(c.ops.size());
}

void Folder::add_round(FoldedPlans::Class& c, size_t first, size_t end) {
  is_taken_.resize(result_.messages.size());
  for (size_t i = first; i < end; ++i) {
    for (const int idx : waits_[i]) {
      if (is_taken_[static_cast<size_t>(idx)]) continue;
      is_taken_[static_cast<size_t>(idx)] = true;
      c.ops.push_back({.kind = StepKind::kRecv, .message = idx});
    }
    c.ops.push_back({.n_received = rounds_.phases[i].n_messages, .work = rounds_.phases[i].work});
  }
}

Status Folder::check() const {
  for (const FoldedPlans::Message& m : result_.messages) {
    const int64_t sent = int64_t{m.n_per_sender} * result_.classes[static_cast<size_t>(m.from)].n_ranks;
    const int64_t taken = int64_t{m.n_per_receiver} * result_.classes[static_cast<size_t>(m.to)].n_ranks;
    if (sent == taken) continue;
    return error(Code::kInternal, "{} by {}: ranks like {} send {} messages that ranks like {} take {} times",
                 name(result_.frame.collective), result_.frame.algorithm,
                 result_.classes[static_cast<size_t>(m.from)].example, sent,
                 result_.classes[static_cast<size_t>(m.to)].example, taken);
  }
  return {};
}

Result<FoldedPlans> Folder::run() {
  count();
  for (size_t i = 0; i < result_.classes.size(); ++i) {
    const int example = result_.classes[i].example;
    TERN_ASSIGN(Plan plan, request_.plan_of(example));
    rounds_.read(plan, request_.in_place, [&](int peer) { return cluster_.path(peer, example).alpha; });
    if (i == 0) {
      plan.steps.clear();
      result_.frame = std::move(plan);
    }
    add_class(example);
  }
  TERN_TRY(check());
  return std::move(result_);
}

}  // namespace

Result<FoldedPlans> fold(const Cluster& cluster, const FoldRequest& request) {
  Colours colours(cluster, request);
  if (request.every_rank)
    colours.tell_all_apart();
  else
    TERN_TRY(colours.find());
  return Folder(cluster, request, colours).run();
}

}  // namespace tern::simulation
