#include "runtime/plan/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tern {
namespace {

CostModel network(double alpha, double beta) {
  CostModel model;
  model.link = [alpha, beta](int, int) { return Link{alpha, beta}; };
  model.reduce_beta = 0.1e-9;
  model.copy_beta = 0.1e-9;
  model.round_overhead = 0.2e-6;
  return model;
}

CostModel shared_memory(int cores) {
  CostModel model = network(0, 0);
  model.link = [](int, int) { return Link{0.3e-6, 0.1e-9, true}; };
  model.node_of = [](int) { return 0; };
  model.cores_per_node = cores;
  return model;
}

std::string_view best(Collective collective, int p, size_t n_bytes, const CostModel& model) {
  return rank_candidates({collective, p, 0, n_bytes}, model)->front().algorithm->name;
}

TEST(Select, TakesLatencyAlgorithmsForTinyVectorsAndBandwidthAlgorithmsForHugeOnes) {
  const CostModel ethernet = network(20e-6, 1e-9);
  for (const int p : {4, 5, 8, 16, 31}) {
    SCOPED_TRACE(p);
    EXPECT_THAT(best(Collective::kAllReduce, p, 4, ethernet),
                ::testing::AnyOf("one_shot", "tree", "halving_doubling", "recursive_multiplying"));
    EXPECT_THAT(best(Collective::kAllReduce, p, 256 << 20, ethernet),
                ::testing::AnyOf("ring", "bi_ring", "direct", "halving_doubling"));
    EXPECT_THAT(best(Collective::kBroadcast, p, 4, ethernet), ::testing::AnyOf("tree", "double_tree"));
    EXPECT_THAT(best(Collective::kBroadcast, p, 256 << 20, ethernet),
                ::testing::AnyOf("chain", "double_tree"));
  }
  EXPECT_EQ(best(Collective::kAllReduce, 3, 4, ethernet), "one_shot");
  EXPECT_EQ(best(Collective::kBarrier, 16, 0, ethernet), "dissemination");
  EXPECT_EQ(best(Collective::kBroadcast, 4, 1 << 20, shared_memory(4)), "direct");
}

TEST(Select, SortsByPredictedTimeAndTriesEverySegmentSizeOnce) {
  const CandidateQuery query{Collective::kAllReduce, 4, 0, 16 << 20};
  const auto candidates = *rank_candidates(query, network(5e-6, 1e-9));
  std::set<std::pair<std::string_view, size_t>> seen;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    EXPECT_TRUE(seen.insert({c.algorithm->name, c.segment_bytes}).second)
        << c.algorithm->name << c.segment_bytes;
    if (i > 0) {
      EXPECT_GE(c.prediction.seconds, candidates[i - 1].prediction.seconds);
    }
  }
  for (const Algorithm& a : algorithms())
    if (a.supports({.collective = query.collective, .n_ranks = query.n_ranks})) {
      EXPECT_TRUE(seen.contains({a.name, 0})) << a.name;
    }
  EXPECT_TRUE(seen.contains({"ring", 1 << 20}));
  EXPECT_FALSE(seen.contains({"ring", 4 << 20}));  // a chunk of 4 MiB is not cut by it
}

TEST(Select, FindsTheFastestWithoutTryingAll) {
  CostModel crowded = shared_memory(2);
  crowded.cache_bytes = 256 << 10;
  crowded.far = 1.5;
  for (const CostModel& model : {network(20e-6, 1e-9), network(1e-6, 0.1e-9), shared_memory(16), crowded}) {
    for (const int p : {1, 2, 3, 4, 7, 16}) {
      for (int c = 0; c < kNumCollectives; ++c) {
        for (const size_t n_bytes : {0, 4, 4096, 100000, 1 << 20, 16 << 20}) {
          const CandidateQuery query{static_cast<Collective>(c), p, 0, n_bytes};
          SCOPED_TRACE(fmt::format("{}, p = {}, {} bytes", name(query.collective), p, n_bytes));
          const Candidate all = rank_candidates(query, model)->front();
          const Candidate one = *fastest_candidate(query, model);
          EXPECT_EQ(one.algorithm->name, all.algorithm->name);
          EXPECT_EQ(one.segment_bytes, all.segment_bytes);
          EXPECT_EQ(one.prediction.seconds, all.prediction.seconds);
        }
      }
    }
  }
}

TEST(Select, OffersOnlyEncodableAlgorithmsToEncodedCallsAndPredictsFewerBytes) {
  CostModel model = network(5e-6, 1e-9);
  model.wire_ratio = 0.25;
  const CandidateQuery dense{Collective::kReduceScatter, 4, 0, 16 << 20};
  CandidateQuery encoded = dense;
  encoded.encoded = true;
  const auto candidates = *rank_candidates(encoded, model);
  for (const Candidate& c : candidates) {
    EXPECT_TRUE(c.algorithm->can_encode()) << c.algorithm->name;
    EXPECT_EQ(c.prediction.bytes_on_wire_per_rank, (size_t{16} << 20) * 3 / 4 / 4);
  }
  EXPECT_LT(candidates[0].prediction.seconds, rank_candidates(dense, model)->front().prediction.seconds);
}

TEST(Select, TriesOnlyWhatIsAskedForAndRefusesWhatThatCannotDo) {
  const CostModel model = network(5e-6, 1e-9);
  CandidateQuery query{Collective::kAllReduce, 4, 0, 8 << 20};
  query.only = "ring";
  const auto rings = *rank_candidates(query, model);
  for (const Candidate& c : rings) EXPECT_EQ(c.algorithm->name, "ring");
  query.only = "ring@256k";
  const auto cut = *rank_candidates(query, model);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].segment_bytes, 256u << 10);
  EXPECT_EQ(cut[0].prediction.n_messages, 6 * 8);

  query.encoded = true;
  EXPECT_EQ(rank_candidates(query, model).error().code, Code::kUnsupported);
  EXPECT_THAT(rank_candidates(query, model).error().message,
              ::testing::HasSubstr("all_reduce by ring cannot be encoded"));
  query.only = "rong";
  EXPECT_EQ(rank_candidates(query, model).error().code, Code::kInvalidArgument);
  query.only = "dissemination";
  EXPECT_EQ(rank_candidates(query, model).error().code, Code::kUnsupported);
  CandidateQuery barrier{Collective::kBarrier, 4};
  barrier.encoded = true;
  EXPECT_EQ(rank_candidates(barrier, model).error().code, Code::kUnsupported);
}

TEST(Select, TriesNoSegmentsSmallerThanTheLeastExceptWhatIsAskedFor) {
  CandidateQuery query{Collective::kAllReduce, 4, 0, 64 << 20};
  query.least_segment = 300000;
  const auto candidates = *rank_candidates(query, network(5e-6, 1e-9));
  for (const Candidate& c : candidates) EXPECT_TRUE(c.segment_bytes == 0 || c.segment_bytes >= 1 << 20);
  EXPECT_GT(candidates.size(), 5u);
  query.only = "ring@64k";
  EXPECT_EQ(rank_candidates(query, network(5e-6, 1e-9))->size(), 1u);
}

TEST(Select, DoesNotCutPlansWhoseRunsOfChunksBelongToRanks) {
  CandidateQuery query{Collective::kReduceScatter, 3, 0, 64 << 20};
  query.only = "halving_doubling";
  EXPECT_EQ(rank_candidates(query, network(5e-6, 1e-9))->size(), 1u);
  query.collective = Collective::kAllReduce;
  EXPECT_GT(rank_candidates(query, network(5e-6, 1e-9))->size(), 1u);
}

TEST(Select, PrintsItsDecisionsInTheGrammarOfTheRules) {
  const auto rules = decisions({Collective::kAllReduce, 4}, network(20e-6, 1e-9), 64 << 20);
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const std::string text = to_string(*rules);
  EXPECT_EQ(*parse_algorithm_rules(text), *rules) << text;
  EXPECT_GT(rules->of[0].size(), 1u) << text;
  for (const size_t n_bytes : {size_t{0}, size_t{1}, size_t{5000}, size_t{1} << 40})
    EXPECT_NE(rules->find(Collective::kAllReduce, n_bytes), "") << text;
}

TEST(Select, OffersHierarchicalPlansAcrossHostsAndTakesThemWhereLinksBetweenHostsAreSlow) {
  CostModel model = shared_memory(8);
  model.node_of = [](int rank) { return 10 * (rank / 4); };
  model.link = [](int from, int to) {
    return from / 4 == to / 4 ? Link{0.3e-6, 0.05e-9, true} : Link{20e-6, 1e-9};
  };
  const std::vector<int> hosts = hosts_of(model, 16);
  EXPECT_EQ(hosts[4], 1);
  EXPECT_TRUE(hosts_of(shared_memory(8), 16).empty());
  for (const Collective c : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    CandidateQuery query{c, 16, 0, 16 << 20};
    query.only = "hierarchical";
    EXPECT_THAT(rank_candidates(query, model).error().message, ::testing::HasSubstr("on one host"));
    query.node_of = hosts;
    query.only = "";
    EXPECT_EQ(fastest_candidate(query, model)->algorithm->name, "hierarchical") << name(c);
  }
}

TEST(Select, OffersOnlySumsInRankOrderWhereThatIsAskedFor) {
  CandidateQuery query{Collective::kAllReduce, 5, 0, 1 << 20};
  query.rank_order = true;
  const auto candidates = *rank_candidates(query, network(5e-6, 1e-9));
  for (const Candidate& c : candidates) EXPECT_TRUE(c.algorithm->rank_order) << c.algorithm->name;
  query.only = "ring";
  EXPECT_THAT(rank_candidates(query, network(5e-6, 1e-9)).error().message,
              ::testing::HasSubstr("all_reduce by ring does not sum in rank order"));
  query.collective = Collective::kAllGather;  // nothing is summed
  EXPECT_TRUE(rank_candidates(query, network(5e-6, 1e-9)).ok());
}

TEST(Select, AWorldOfOneHasACandidateForEveryCollective) {
  for (int c = 0; c < kNumCollectives; ++c)
    EXPECT_TRUE(rank_candidates({static_cast<Collective>(c), 1, 0, 1000}, network(1e-6, 1e-9)).ok());
}

}  // namespace
}  // namespace tern
