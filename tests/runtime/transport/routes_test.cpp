#include "runtime/transport/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One string per member: a letter per row, the name of its domain; '-' for none.
std::vector<Domains> domains_of(const std::vector<std::string>& members) {
  std::vector<Domains> all;
  for (size_t i = 0; i < members.size(); ++i) {
    Domains domains{static_cast<int>(10 * i), {}};
    for (const char letter : members[i]) {
      if (letter == '-')
        domains.rows.push_back({"", "not here"});
      else
        domains.rows.push_back({std::string(1, letter), ""});
    }
    all.push_back(std::move(domains));
  }
  return all;
}

TEST(Routes, TakeOneRowWhereOneJoinsAll) {
  const auto routes = choose_routes(domains_of({"au", "au", "au"}), 1).value();
  EXPECT_THAT(routes.joins, ElementsAre(Routes::Join{0, {0, 1, 2}}));
  EXPECT_THAT(routes.join_of, ElementsAre(0, 0, 0));
}

TEST(Routes, TakeTheFirstRowInsideADomainAndTheNextBetween) {
  const auto domains = domains_of({"au", "bu", "au", "bu"});
  const auto routes = choose_routes(domains, 2).value();
  EXPECT_THAT(routes.joins, ElementsAre(Routes::Join{0, {0, 2}}, Routes::Join{1, {0, 1, 2, 3}}));
  EXPECT_THAT(routes.join_of, ElementsAre(0, 1, 0, 1));
}

TEST(Routes, ConnectNoRowThatNoPairNeeds) {
  // Member 2 is alone in its domain of the first row.
  const auto domains = domains_of({"au", "au", "bu"});
  EXPECT_THAT(choose_routes(domains, 2)->joins, ElementsAre(Routes::Join{1, {0, 1, 2}}));
  EXPECT_THAT(choose_routes(domains, 0)->joins,
              ElementsAre(Routes::Join{0, {0, 1}}, Routes::Join{1, {0, 1, 2}}));
}

TEST(Routes, HaveAllMembersOfADomainConnectAsSoonAsOnePairNeedsIt) {
  // 0 and 1 need the second row for 2 and 3, which reach each other by the first: all four connect the
  // second.
  const auto domains = domains_of({"-u", "-u", "bu", "bu"});
  for (size_t self = 0; self < 4; ++self) {
    EXPECT_THAT(choose_routes(domains, self)->joins.back(), (Routes::Join{1, {0, 1, 2, 3}})) << self;
  }
}

TEST(Routes, NameThePairThatNothingJoins) {
  const auto routes = choose_routes(domains_of({"a-", "b-"}), 0);
  ASSERT_FALSE(routes.ok());
  EXPECT_EQ(routes.error().code, Code::kUnsupported);
  EXPECT_THAT(routes.error().message, HasSubstr("ranks 0 and 10"));
  EXPECT_THAT(routes.error().message, HasSubstr("not here"));
}

TEST(Routes, SayWhomARowDoesNotJoin) {
  EXPECT_TRUE(joins_all(domains_of({"a", "a"}), 0, "t").ok());
  EXPECT_THAT(joins_all(domains_of({"a", "-"}), 0, "t").error().message, HasSubstr("rank 10 cannot use"));
  EXPECT_THAT(joins_all(domains_of({"a", "b"}), 0, "t").error().message,
              HasSubstr("does not join ranks 0 and 10"));
}

}  // namespace
}  // namespace tern
