#include "runtime/plan/simulate_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tern::simulation {
namespace {

// When each message of the traffic ends, all taken at time 0.
std::map<int, double> ends(const Traffic& traffic) {
  Fabric fabric(traffic);
  std::map<int, double> result;
  for (int m = 0; m < static_cast<int>(traffic.flows.size()); ++m) {
    const double end = fabric.take(m, 0);
    if (end != kNotYet) result[m] = end;
  }
  double now = 0;
  for (double end = fabric.next_end(now); end != kNever; end = fabric.next_end(now)) {
    now = end;
    for (const int m : fabric.advance(end)) result[m] = end;
  }
  return result;
}

// Two links, of 10 and 4 byte/s.
Traffic two_links() {
  return {.flows = {},
          .paths = {{0, {0}}, {0, {0, 1}}, {0, {1}}},
          .bytes_per_s = {10, 4},
          .per_link = {1, 1},
          .n_lanes = 3};
}

TEST(Fabric, WhatABottleneckLeavesIsForTheOthers) {
  Traffic traffic = two_links();
  traffic.flows = {{.bytes = 80, .n_total = 1, .path = 0, .lane = 0},
                   {.bytes = 20, .n_total = 1, .path = 1, .lane = 1},
                   {.bytes = 20, .n_total = 1, .path = 2, .lane = 2}};
  const auto end = ends(traffic);  // 2 byte/s each on the second link, 8 on the first
  for (const int m : {0, 1, 2}) EXPECT_NEAR(end.at(m), 10, 1e-6) << m;
}

TEST(Fabric, WhoStaysGetsWhatWhoEndsHad) {
  Traffic traffic = two_links();
  traffic.flows = {{.bytes = 15, .n_total = 1, .path = 0, .lane = 0},
                   {.bytes = 35, .n_total = 1, .path = 0, .lane = 1}};
  const auto end = ends(traffic);
  EXPECT_NEAR(end.at(0), 3, 1e-9);             // 5 byte/s each
  EXPECT_NEAR(end.at(1), 3 + 20 / 10., 1e-9);  // then 10
}

TEST(Fabric, AClassOfMessagesWeighsAsManyAsPassOneLink) {
  Traffic traffic = two_links();
  traffic.per_link = {1. / 4, 1};  // the first stands for four links, with two of eight messages on each
  traffic.flows = {{.bytes = 10, .n_total = 8, .path = 0, .lane = 0}};
  EXPECT_NEAR(ends(traffic).at(0), 2, 1e-9);
}

TEST(Fabric, ALaneSendsTheMessagesOfOneRoundThenThoseOfTheNext) {
  Traffic traffic = two_links();
  traffic.flows = {{.bytes = 10, .n_total = 1, .path = 0, .lane = 0, .round = 3},
                   {.bytes = 10, .n_total = 1, .path = 0, .lane = 0, .round = 3},
                   {.bytes = 10, .n_total = 1, .path = 0, .lane = 0, .round = 2}};
  const auto end = ends(traffic);
  EXPECT_NEAR(end.at(0), 2, 1e-9);
  EXPECT_NEAR(end.at(1), 2, 1e-9);
  EXPECT_NEAR(end.at(2), 3, 1e-9);
}

TEST(Fabric, EmptyMessagesAndThoseWithoutLinksArriveAtOnce) {
  Traffic traffic = two_links();
  traffic.paths.push_back({0, {}});
  traffic.flows = {{.bytes = 0, .n_total = 1, .path = 0, .lane = 0},
                   {.bytes = 10, .n_total = 1, .path = 3, .lane = 1}};
  EXPECT_THAT(ends(traffic), testing::ElementsAre(testing::Pair(0, 0.), testing::Pair(1, 0.)));
}

}  // namespace
}  // namespace tern::simulation
