#include "runtime/plan/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tern {
namespace {

using ::testing::HasSubstr;

TEST(Rules, ChooseByCollectiveAndSizeAndLeaveTheRestToThePlanner) {
  const auto rules = parse_algorithm_rules("all_reduce:0-64k=tree,1M-inf=ring@256k;broadcast:tree");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_EQ(rules->find(Collective::kAllReduce, 0), "tree");
  EXPECT_EQ(rules->find(Collective::kAllReduce, 65535), "tree");
  EXPECT_EQ(rules->find(Collective::kAllReduce, 65536), "");
  EXPECT_EQ(rules->find(Collective::kAllReduce, 1 << 20), "ring@256k");
  EXPECT_EQ(rules->find(Collective::kBroadcast, 1 << 30), "tree");
  EXPECT_EQ(rules->find(Collective::kAllGather, 0), "");
}

TEST(Rules, AnAlgorithmAloneHoldsForEveryCollectiveItHas) {
  const auto rules = parse_algorithm_rules("halving_doubling");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_EQ(rules->find(Collective::kReduceScatter, 5), "halving_doubling");
  EXPECT_EQ(rules->find(Collective::kBroadcast, 5), "");
}

TEST(Rules, AChoiceNamesAnAlgorithmAndMaybeASegmentSize) {
  const auto choice = parse_algorithm_choice("ring@256k");
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->algorithm->name, "ring");
  EXPECT_EQ(choice->segment_bytes, std::optional<size_t>(256 << 10));
  EXPECT_EQ(to_string(*choice), "ring@256k");
  EXPECT_FALSE(parse_algorithm_choice("tree")->segment_bytes.has_value());
  EXPECT_FALSE(parse_algorithm_choice("").ok());
}

TEST(Rules, AreReadBackFromTheirText) {
  for (const std::string_view spec :
       {"", "all_reduce:0-64k=tree,64k-inf=ring", "all_reduce:0-100=one_shot,100-3M=direct@0,3M-inf=ring@1M",
        "reduce_scatter:4k-inf=ring;all_gather:0-inf=direct;barrier:0-inf=dissemination"}) {
    const auto rules = parse_algorithm_rules(spec);
    ASSERT_TRUE(rules.ok()) << rules.error().message;
    EXPECT_EQ(to_string(*rules), spec);
  }
  for (const std::string_view spec :
       {"ring", "tree@64k", "all_reduce:1M-inf=ring,0-1k=tree", "broadcast:chain"}) {
    const auto rules = parse_algorithm_rules(spec);
    ASSERT_TRUE(rules.ok()) << rules.error().message;
    EXPECT_EQ(*parse_algorithm_rules(to_string(*rules)), *rules) << spec;
  }
}

TEST(Rules, ErrorsSayWhereAndWhatIsAllowed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"all_reduce:0-64k=treee",
       "character 18, \"treee\": there is no such algorithm; did you mean \"tree\"?"},
      {"rings", "character 1, \"rings\": there is no such algorithm; did you mean \"ring\"?"},
      {"allreduce:ring",
       "character 1, \"allreduce\": there is no collective \"allreduce\"; did you mean \"all_reduce\"?"},
      {"all_reduce:0-64q=tree", "character 14, \"64q\": \"64q\" is not a size"},
      {"all_reduce:64k=tree", "character 12, \"64k=tree\": a range is written FROM-TO=ALGORITHM"},
      {"all_reduce:64k-64k=tree", "character 12, \"64k-64k=tree\": the range is empty"},
      {"all_reduce:0-64k=tree,32k-inf=ring", "character 23, \"32k-inf=ring\": overlaps 0-64k of all_reduce"},
      {"all_reduce:ring;tree", "character 17, \"tree\": overlaps 0-inf of all_reduce"},
      {"broadcast:0-inf=halving_doubling", "halving_doubling has no broadcast"},
      {"all_reduce:ring@", "character 17, \"\": \"\" is not a size"},
      {"all_reduce:", "character 12, \"\": there is no such algorithm"},
      {";", "character 1, \"\": there is no such algorithm"},
      {"all_reduce:0-64k=tree,", "character 23, \"\": there is no such algorithm"},
  };
  for (const auto& [spec, message] : cases) {
    const auto rules = parse_algorithm_rules(spec);
    ASSERT_FALSE(rules.ok()) << spec;
    EXPECT_EQ(rules.error().code, Code::kInvalidArgument);
    EXPECT_THAT(rules.error().message, HasSubstr(std::string(message))) << spec;
  }
}

}  // namespace
}  // namespace tern
