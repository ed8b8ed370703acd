#include "runtime/bootstrap/speaker.h"

#include <gtest/gtest.h>

#include <array>

namespace tern {
namespace {

constexpr int kSize = 4;

EnvironmentLookup as_rank(int rank) {
  return [rank](std::string_view name) -> std::optional<std::string> {
    if (name == "RANK") return std::to_string(rank);
    if (name == "WORLD_SIZE") return std::to_string(kSize);
    if (name == "MASTER_ADDR") return "localhost";
    if (name == "MASTER_PORT") return "29500";
    return std::nullopt;
  };
}

std::optional<std::string> nobody(std::string_view /*name*/) {
  return std::nullopt;
}

TEST(Speaker, IsOneRankForEveryFailureThatAllKnowAndNeverOneThatIsLost) {
  for (const Code code :
       {Code::kPeerLost, Code::kTimeout, Code::kMismatch, Code::kIo, Code::kInvalidArgument}) {
    for (int at_fault = 0; at_fault < kSize; ++at_fault) {
      const Error failure = error_at(at_fault, code, "it failed");
      int n_speakers = 0;
      for (int rank = 0; rank < kSize; ++rank) {
        if (!speaks_without_world(failure, as_rank(rank))) continue;
        ++n_speakers;
        EXPECT_EQ(rank, speaker_of(failure, kSize));
        EXPECT_TRUE(rank != at_fault || code != Code::kPeerLost);
      }
      EXPECT_EQ(n_speakers, 1) << name(code) << " of rank " << at_fault;
    }
  }
}

TEST(Speaker, IsEveryRankForWhatOnlyItKnows) {
  const Error own = error(Code::kInvalidArgument, "the address cannot be resolved");
  for (int rank = 0; rank < kSize; ++rank) EXPECT_TRUE(speaks_without_world(own, as_rank(rank)));
  EXPECT_TRUE(speaks_without_world(own, nobody));
}

TEST(Speaker, IsRankZeroBeforeThereIsAWorldOrWhoIsAlone) {
  for (int rank = 0; rank < kSize; ++rank) EXPECT_EQ(speaks_first(as_rank(rank)), rank == 0);
  EXPECT_TRUE(speaks_first(nobody));
}

TEST(Speaker, OfAWorldOfOneIsItsRank) {
  EXPECT_EQ(speaker_of(error_at(0, Code::kTimeout, "late"), 1), 0);
}

}  // namespace
}  // namespace tern
