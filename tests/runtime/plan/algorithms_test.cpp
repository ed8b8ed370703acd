// What each algorithm promises in its head comment, beyond being correct: messages, bytes, rounds, order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/plan/builder.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

/// Most chunks that a rank sends, and its messages.
struct Sent {
  int n_chunks = 0;
  int n_messages = 0;
};

Sent busiest(const std::vector<Plan>& plans) {
  Sent most;
  for (const Plan& plan : plans) {
    Sent sent;
    for (const Step& step : plan.steps) {
      if (step.kind != StepKind::kSend) continue;
      sent.n_chunks += step.src.n_chunks;
      ++sent.n_messages;
    }
    most.n_chunks = std::max(most.n_chunks, sent.n_chunks);
    most.n_messages = std::max(most.n_messages, sent.n_messages);
  }
  return most;
}

TEST(Algorithms, RingsAndDirectSendTheFewestBytes) {
  for (const std::string_view algorithm : {"ring", "bi_ring", "direct"}) {
    for (int p = 2; p <= 17; ++p) {
      SCOPED_TRACE(fmt::format("{}, p = {}", algorithm, p));
      for (const Collective c : {Collective::kReduceScatter, Collective::kAllGather})
        EXPECT_EQ(busiest(plans_of(algorithm, c, p)).n_chunks, p - 1);
      EXPECT_EQ(busiest(plans_of(algorithm, Collective::kAllReduce, p)).n_chunks, 2 * (p - 1));
      EXPECT_EQ(plans_of(algorithm, Collective::kAllReduce, p)[0].n_chunks, p);
    }
  }
}

TEST(Algorithms, HalvingDoublingTakesLogarithmicRoundsAndAtMostOneMessageMorePerOddLevel) {
  for (int p = 2; p <= 64; ++p) {
    SCOPED_TRACE(p);
    const auto plans = plans_of("halving_doubling", Collective::kReduceScatter, p);
    EXPECT_EQ(plans[0].n_rounds, ceil_log2(p));
    EXPECT_EQ(busiest(plans).n_messages, ceil_log2(p));
    EXPECT_LE(busiest(plans).n_chunks, p - 1);
    const auto gather = busiest(plans_of("halving_doubling", Collective::kAllGather, p));
    EXPECT_LE(gather.n_messages, 2 * ceil_log2(p));
    const bool is_power = (p & (p - 1)) == 0;
    EXPECT_TRUE(!is_power || gather.n_chunks == p - 1);
  }
}

TEST(Algorithms, BiRingTakesHalfOfTheRingsRoundsAndSendsAtMostOneChunkToEachSideInARound) {
  for (int p = 2; p <= 33; ++p) {
    for (const Collective c : {Collective::kReduceScatter, Collective::kAllGather, Collective::kAllReduce}) {
      const auto plans = plans_of("bi_ring", c, p);
      EXPECT_EQ(plans[0].n_rounds, (c == Collective::kAllReduce ? 2 : 1) * (p / 2)) << p;
      for (const Plan& plan : plans) {
        std::set<std::pair<int, int>> sends;
        for (const Step& step : plan.steps)
          if (step.kind == StepKind::kSend && p > 2) {
            EXPECT_TRUE(sends.insert({step.round, step.peer}).second) << to_string(plan);
          }
        EXPECT_LE(plan.n_scratch, 4);
      }
    }
  }
}

TEST(Algorithms, RecursiveMultiplyingTakesAboutHalfOfTheRoundsOfRecursiveDoubling) {
  const std::pair<int, int> rounds[] = {{4, 2}, {16, 2}, {64, 3}, {1024, 5}, {12, 2}, {13, 4}, {3, 2}};
  for (const auto& [p, n] : rounds)
    EXPECT_EQ(plans_of("recursive_multiplying", Collective::kAllReduce, p)[0].n_rounds, n) << p;
  for (int p = 2; p <= 64; ++p) {
    SCOPED_TRACE(p);
    for (const Collective c : {Collective::kReduceScatter, Collective::kAllGather})
      EXPECT_EQ(plans_of("recursive_multiplying", c, p)[0].n_rounds, ceil_log(p, 4));
    EXPECT_LE(busiest(plans_of("recursive_multiplying", Collective::kReduceScatter, p)).n_chunks, p - 1);
  }
}

TEST(Algorithms, PairwiseMeetsOnePartnerARoundBothWays) {
  for (int p = 2; p <= 33; ++p) {
    SCOPED_TRACE(p);
    for (const Plan& plan : plans_of("pairwise", Collective::kAllToAll, p)) {
      std::map<int, int> sent;
      std::map<int, int> received;
      for (const Step& step : plan.steps) {
        if (step.peer < 0) continue;
        auto& partners = step.kind == StepKind::kSend ? sent : received;
        EXPECT_TRUE(partners.insert({step.round, step.peer}).second);
      }
      EXPECT_EQ(sent, received);
      EXPECT_EQ(sent.size(), static_cast<size_t>(p - 1));
      EXPECT_LE(sent.rbegin()->first, p % 2 == 0 ? p - 2 : p - 1);
    }
  }
}

TEST(Algorithms, PairwiseInPlaceNeedsTwoPlaces) {
  const Algorithm& pairwise = *find_algorithm("pairwise").value();
  for (int p = 2; p <= 17; ++p)
    for (const Plan& plan : plans_of(pairwise, TestWorld{Collective::kAllToAll, p, 0, false, InPlace::kAll}))
      EXPECT_LE(plan.n_scratch, 2);
}

TEST(Algorithms, BruckSendsOneMessageADigitWhateverTheRankCount) {
  for (int p = 2; p <= 65; ++p) {
    SCOPED_TRACE(p);
    EXPECT_EQ(busiest(plans_of("bruck", Collective::kAllToAll, p)).n_messages, ceil_log2(p));
    const Sent gather = busiest(plans_of("bruck", Collective::kAllGather, p));
    EXPECT_EQ(gather.n_chunks, p - 1);
    EXPECT_LE(gather.n_messages, 2 * ceil_log2(p));
  }
}

TEST(Algorithms, DoubleTreeLetsNoRankSendMoreThanTwiceTheVectorInAboutTwoLogRounds) {
  for (int p = 2; p <= 65; ++p) {
    SCOPED_TRACE(p);
    const auto plans = plans_of("double_tree", Collective::kAllReduce, p);
    EXPECT_LE(busiest(plans).n_chunks, 4);  // halves
    EXPECT_LE(plans[0].n_rounds, 2 * ceil_log2(p + 1));
    EXPECT_LE(busiest(plans_of("double_tree", Collective::kBroadcast, p)).n_chunks, 2);
    for (const Plan& plan : plans_of("double_tree", Collective::kReduce, p)) EXPECT_LE(plan.n_scratch, 1);
  }
}

TEST(Algorithms, ChainsPassTheVectorOnOnce) {
  for (const Collective c : {Collective::kBroadcast, Collective::kReduce})
    EXPECT_EQ(busiest(plans_of("chain", c, 9, 4)).n_chunks, 1);
}

TEST(Algorithms, TreesOfDegreeFourTakeHalfOfTheRounds) {
  for (int p = 2; p <= 65; ++p)
    for (const Collective c :
         {Collective::kBroadcast, Collective::kReduce, Collective::kGather, Collective::kScatter})
      EXPECT_EQ(plans_of("knomial", c, p)[0].n_rounds, ceil_log(p, 4)) << p;
}

TEST(Algorithms, TreesAndDisseminationTakeLogarithmicRounds) {
  for (int p = 2; p <= 33; ++p) {
    SCOPED_TRACE(p);
    EXPECT_EQ(plans_of("tree", Collective::kBroadcast, p)[0].n_rounds, ceil_log2(p));
    EXPECT_EQ(plans_of("tree", Collective::kAllReduce, p)[0].n_rounds, 2 * ceil_log2(p));
    EXPECT_EQ(plans_of("dissemination", Collective::kBarrier, p)[0].n_rounds, ceil_log2(p));
    EXPECT_EQ(plans_of("one_shot", Collective::kBarrier, p)[0].n_rounds, 1);
  }
}

TEST(Algorithms, DirectAndOneShotListTheirOperandsInRankOrder) {
  for (const std::string_view algorithm : {"direct", "one_shot"}) {
    for (int p = 2; p <= 17; ++p) {
      for (const Plan& plan : plans_of(algorithm, Collective::kAllReduce, p)) {
        SCOPED_TRACE(to_string(plan));
        size_t first = 0;
        while (plan.steps[first].kind == StepKind::kSend) ++first;
        ASSERT_EQ(reduction_end(plan.steps, first) - first, static_cast<size_t>(p));
        for (int from = 0; from < p; ++from) {
          const Step& step = plan.steps[first + static_cast<size_t>(from)];
          EXPECT_EQ(step.peer, from == plan.rank ? -1 : from);
          const bool overwrites = step.kind == StepKind::kRecv || step.kind == StepKind::kCopy;
          EXPECT_EQ(overwrites, from == 0);
        }
      }
    }
  }
}

TEST(Algorithms, OfDirectTalkToAnotherPeerInEveryStep) {
  const int p = 7;
  const auto plans = plans_of("direct", Collective::kReduceScatter, p);
  for (size_t k = 0; k + 1 < static_cast<size_t>(p); ++k) {
    std::set<int> receivers;
    for (const Plan& plan : plans) receivers.insert(plan.steps[k].peer);
    EXPECT_EQ(receivers.size(), static_cast<size_t>(p)) << "step " << k;
  }
}

TEST(Algorithms, RingReduceScatterNeedsTwoPlacesAtMost) {
  for (int p = 2; p <= 17; ++p)
    for (const Plan& plan : plans_of("ring", Collective::kReduceScatter, p))
      EXPECT_LE(plan.n_scratch, std::min(2, p - 2));
}

TEST(Algorithms, OfOneRankCopyAndNothingElse) {
  for_each_pair(1, [](const Algorithm& algorithm, Collective collective) {
    const Plan plan = plans_of(algorithm, collective, 1)[0];
    SCOPED_TRACE(to_string(plan));
    if (collective == Collective::kBarrier) {
      EXPECT_TRUE(plan.steps.empty());
      return;
    }
    ASSERT_EQ(plan.steps.size(), 1u);
    EXPECT_EQ(plan.steps[0].kind, StepKind::kCopy);
  });
}

TEST(Registry, EveryCollectiveHasAnAlgorithmAndEveryAlgorithmASummary) {
  for (int c = 0; c < kNumCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    EXPECT_TRUE(std::any_of(algorithms().begin(), algorithms().end(), [&](const Algorithm& a) {
      return a.supports({.collective = collective, .n_ranks = 5});
    })) << name(collective);
  }
  std::set<std::string_view> names;
  for (const Algorithm& a : algorithms()) {
    EXPECT_TRUE(names.insert(a.name).second) << a.name;
    EXPECT_FALSE(a.summary.empty()) << a.name;
    EXPECT_EQ((*find_algorithm(a.name))->name, a.name);
    for_each_pair(4, [](const Algorithm& built, Collective collective) {
      EXPECT_EQ(built.build({collective, 0, 4, 0}).algorithm, built.name);
    });
  }
}

TEST(Registry, NamesTheAlgorithmsThereAreWhenOneIsUnknown) {
  const auto found = find_algorithm("brucks");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kNotFound);
  EXPECT_THAT(found.error().message,
              ::testing::HasSubstr("no algorithm \"brucks\"; there are ring, bi_ring, "));
}

}  // namespace
}  // namespace tern
