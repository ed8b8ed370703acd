#include "runtime/topology/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/topology/cluster_file.h"

namespace tern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFile = R"({
 "name": "small", "source": "a test", "ranks": 16,
 "device": { "name": "d", "copy_gb_per_s": 10, "reduce_gb_per_s": 9,
             "encode_gb_per_s": 8, "decode_gb_per_s": 7 },
 "message_overhead_us": 2,
 "levels": [
  { "name": "gpu", "size": 1, "link": { "name": "nvlink", "gb_per_s": 100,
                                             "alpha_us": 1, "inside_only": true } },
  { "name": "node", "size": 4, "link": { "name": "nic", "count": 2, "gb_per_s": 10, "alpha_us": 5 } },
  { "name": "leaf", "size": 2, "link": { "name": "uplink", "gb_per_s": 20, "alpha_us": 8, "duplex": "half" } }
 ]
})";

std::vector<std::string> links_between(const Cluster& cluster, int from, int to) {
  const ClusterPath path = cluster.path(from, to);
  std::vector<std::string> names;
  for (const int link : path.span()) names.push_back(cluster.link_name(link));
  return names;
}

TEST(Cluster, AMessagePassesTheLinksOfEveryGroupItLeavesAndEnters) {
  const auto cluster = parse_cluster(kFile, "small.json");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_THAT(links_between(*cluster, 0, 3), ElementsAre("gpu 0 nvlink out", "gpu 3 nvlink in"));
  EXPECT_THAT(links_between(*cluster, 1, 6), ElementsAre("node 0 nic 0 out", "node 1 nic 1 in"));
  EXPECT_THAT(links_between(*cluster, 15, 4),
              ElementsAre("node 3 nic 1 out", "leaf 1 uplink", "leaf 0 uplink", "node 1 nic 0 in"));
  EXPECT_DOUBLE_EQ(cluster->path(0, 3).alpha, 1e-6);
  EXPECT_DOUBLE_EQ(cluster->path(1, 6).alpha, 5e-6);
  EXPECT_DOUBLE_EQ(cluster->path(15, 4).alpha, 8e-6);
  EXPECT_DOUBLE_EQ(cluster->message_overhead, 2e-6);
  EXPECT_EQ(cluster->n_links(), 16 * 2 + 4 * 2 * 2 + 2);
  const int link = cluster->path(1, 6).links[0];
  EXPECT_DOUBLE_EQ(cluster->bytes_per_s(link), 10e9);
  EXPECT_EQ(cluster->level_of_link(link), 1);
}

TEST(Cluster, MoreLinksThanMembersAreUsedInBundles) {
  Cluster cluster;
  cluster.n_ranks = 4;
  cluster.levels = {{"host", 1, {.name = "nic", .count = 4, .bytes_per_s = 1e9}}};
  ASSERT_TRUE(cluster.prepare().ok());
  EXPECT_DOUBLE_EQ(cluster.bytes_per_s(cluster.path(0, 1).links[0]), 4e9);
}

TEST(Cluster, TheLastNodeMayHaveFewerRanks) {
  auto cluster = parse_cluster(kFile, "small.json");
  cluster->n_ranks = 6;
  ASSERT_TRUE(cluster->prepare().ok());
  EXPECT_THAT(links_between(*cluster, 5, 0), ElementsAre("node 1 nic 0 out", "node 0 nic 0 in"));
}

// kFile with `what` replaced.
std::string with(std::string_view what, std::string_view by) {
  std::string text = kFile;
  return text.replace(text.find(what), what.size(), by);
}

TEST(ClusterFile, WrongOnesAreOneSentenceSayingWhereAndWhatIsAllowed) {
  struct Wrong {
    std::string text;
    std::vector<const char*> says;
  };
  const std::vector<Wrong> cases = {
      {"{\n \"name\": }", {"small.json", "line 2, column 10"}},
      {"[]", {"it is []", "an object"}},
      {with("\"ranks\": 16", "\"ranks\": 0"), {"ranks is 0", "1 to 16384"}},
      {with("\"ranks\": 16", "\"ranks\": 1.5"), {"ranks is 1.5", "whole"}},
      {with("\"ranks\": 16,", ""), {"ranks is missing"}},
      {with("\"count\": 2", "\"count\": 3"), {"4 members of a node", "3 nic links", "divide"}},
      {with("\"count\": 2", "\"cuont\": 2"),
       {"levels[1].link has no key \"cuont\"", "did you mean \"count\""}},
      {with("\"gb_per_s\": 10,", "\"gb_per_s\": -1,"), {"levels[1].link.gb_per_s is -1"}},
      {with("\"gb_per_s\": 10,", "\"gb_per_s\": \"fast\","),
       {"levels[1].link.gb_per_s is \"fast\"", "a number"}},
      {with("\"half\"", "\"both\""), {"levels[2].link.duplex is \"both\"", "full or half"}},
      {with("true", "1"), {"levels[0].link.inside_only is 1", "true or false"}},
      {with("\"source\": \"a test\",", ""), {"source is missing"}},
      {with("\"copy_gb_per_s\": 10,", ""), {"device.copy_gb_per_s is missing"}},
      {with("\"name\": \"small\"", "\"name\": \"\""), {"name is \"\"", "not empty"}},
      {with("\"name\": \"small\"", "\"name\": \"small\", \"name\": \"s\""), {"name", "twice"}}};
  for (const Wrong& wrong : cases) {
    const auto cluster = parse_cluster(wrong.text, "small.json");
    ASSERT_FALSE(cluster.ok()) << wrong.text;
    EXPECT_EQ(cluster.error().code, Code::kInvalidArgument);
    for (const char* part : wrong.says) EXPECT_THAT(cluster.error().message, HasSubstr(part));
  }
}

TEST(ClusterFile, EveryFileOfTheTreeIsReadAndNamedAfterItself) {
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TERN_SOURCE_DIR "/tools/clusters")) {
    const auto cluster = read_cluster(entry.path().string());
    ASSERT_TRUE(cluster.ok()) << cluster.error().message;
    EXPECT_EQ(cluster->name, entry.path().stem().string());
    ++n_files;
  }
  EXPECT_GE(n_files, 10);
}

}  // namespace
}  // namespace tern
