// A plan made ready to run: posted receives, sends and fused operations per round.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace tern {

/// One input of a fused operation: this rank's memory, an encoded chunk, or what a receive of
/// the round brings.
struct Operand {
  int recv_idx = -1;  ///< into Round's receives; -1: local
  int wire = -1;      ///< encoded: the wire chunk
  Ref local;
};

struct PostedRecv {
  int peer = -1;
  Ref dst;             ///< where a plain receive lands; a reduced one only passes by
  bool lands = false;  ///< the payload is wanted at dst unchanged (kRecv alone)
  bool encoded = false;
  int wire = -1;  ///< encoded: the wire chunk
};

enum class ActionKind : uint8_t { kSend, kEncode, kCombine, kDecode, kKeepWire };

/// Executed in order. kCombine, and kDecode where operands are encoded, write `dst` once from all of their
/// operands, in the plan's order.
struct Action {
  ActionKind kind = ActionKind::kSend;
  int peer = -1;
  Ref src;
  Ref dst;
  int wire = -1;      ///< encode, keep, sends of wire chunks
  int recv_idx = -1;  ///< keep
  int first_operand = 0;
  int n_operands = 0;
  bool is_finished = false;  ///< encode: of a sum that is complete
};

struct Round {
  std::vector<PostedRecv> recvs;
  std::vector<Action> sends;
  std::vector<Action> work;  ///< all else, in the plan's order
};

/// Made once per plan; immutable afterwards.
struct Program {
  Plan plan;
  std::vector<Round> rounds;
  std::vector<Operand> operands;
  std::vector<int> regions;  ///< scratch_regions() of the plan
  bool moves_runs = false;   ///< some step of this rank moves several chunks as one run
  bool cuts = true;          ///< false: run in one segment, since some rank's runs of chunks would come apart
  int max_recvs = 0;         ///< over all rounds together: the most that can be posted at once
  int max_sends = 0;
};

/// Fuses consecutive receives, reductions, copies and decodings of a round into one n-ary operation per
/// destination, in listed order, which decodes straight from received messages where nothing forwards them.
Program compile(Plan plan);

}  // namespace tern
