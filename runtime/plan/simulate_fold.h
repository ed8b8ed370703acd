// Ranks that behave alike, simulated once: 16384 ranks are a handful of classes.
//
// Ranks and links are coloured so that two ranks of one colour do the same work in every round and exchange,
// over links of equal colours, as many equal messages with ranks of equal colours; two links of one colour
// carry as many equal messages between equal colours. Colours are refined, by the plans of all ranks, until
// that holds (an equitable partition). Then, started alike, all of a colour stay alike: who waits for whom
// and who shares links with whom is the same, and shares are fair. So one rank and one link of each colour
// stand for all: not an approximation.
//
// Colours are told apart by 128-bit fingerprints. Chunks count as equally long.
// Source: colour refinement, Weisfeiler & Leman 1968; equitable partitions, McKay 1981.
#pragma once

#include <functional>

#include "runtime/plan/rank_rounds.h"
#include "runtime/topology/cluster.h"

namespace tern::simulation {

/// The plans of a world on a cluster, by classes of ranks; for every size and speed.
struct FoldedPlans {
  struct Message {
    int from = 0, to = 0;  ///< classes of ranks
    int path = 0;
    int round = 0;
    int n_chunks = 0;
    bool encoded = false;
    int n_per_sender = 0;  ///< equal messages that each rank of `from` sends in the round
    int n_per_receiver = 0;
  };
  struct Op {
    StepKind kind = StepKind::kCopy;
    int message = -1;
    int n_received = 0;  ///< messages that this op ends waiting for
    WorkCounts work{};
  };
  struct Class {
    int n_ranks = 0;
    int example = 0;  ///< lowest of its ranks
    std::vector<Op> ops;
    std::vector<size_t> round_begin;
    std::vector<int> n_sends;  ///< by round, of a rank
  };
  struct LinkClass {
    int n_links = 0;
    int example = 0;
  };
  struct Path {
    double alpha = 0;
    int level = 0;           ///< of the innermost group that holds both ends
    std::vector<int> links;  ///< classes of links, in order
  };

  Plan frame;  ///< rank 0's plan without its steps
  std::vector<Class> classes;
  std::vector<Message> messages;
  std::vector<LinkClass> links;
  std::vector<Path> paths;
};

struct FoldRequest {
  std::function<Result<Plan>(int rank)> plan_of;  ///< called several times per rank, with no plan kept
  bool in_place = true;
  bool every_rank =
      false;  ///< a class for each rank and each link: the simulation that folding must agree with
};

/// Cost:   a few times the plans' making, at most 40 bytes per message class; where no colouring with few
///         classes is found, every rank is a class.
/// Errors: those of plan_of; kUnsupported (too many messages to simulate each, and no symmetry); kInternal (a
///         receive without its send).
Result<FoldedPlans> fold(const Cluster& cluster, const FoldRequest& request);

}  // namespace tern::simulation
