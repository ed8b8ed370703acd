// Plans compiled for the event loop of simulate(): steps with prices, sends paired with receives.
#pragma once

#include <limits>

#include "runtime/plan/simulate.h"

namespace tern::simulation {

inline constexpr double kNotYet = -1;
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// What a step costs a core, per byte of its chunks.
enum class Work : uint8_t { kNone, kCopy, kReduce, kOperand, kEncode, kDecode };
inline constexpr int kNumWorks = 6;

/// A step's part in a reduction: its first operand carries the write, the others are only read.
enum class Part : uint8_t { kAlone, kFirst, kFurther };

/// Walks a plan's steps in their order and says which part of a reduction each is.
class PartFinder {
 public:
  explicit PartFinder(std::span<const Step> steps) : steps_(steps) {}
  /// i: 0, 1, 2, ...
  Part operator()(size_t i) {
    if (i >= end_) {
      first_ = i;
      end_ = reduction_end(steps_, i);
    }
    if (i > first_) return Part::kFurther;
    return end_ > i + 1 ? Part::kFirst : Part::kAlone;
  }

 private:
  std::span<const Step> steps_;
  size_t first_ = 0;
  size_t end_ = 0;
};

/// The core's work on a local step, and on a received one whose bytes a port has brought.
Work work_of(const Step& step, Part part, bool in_place);
/// s per byte.
double beta_of(Work work, const CostModel& model);

/// One step with its prices for one segment.
struct Op {
  StepKind kind;
  int message;  // index of what it sends or receives; -1: local work
  double cpu;   // s of a core; of a receive: once its bytes can be read
};

/// A send and the receive that gets it; in one segment at a time.
struct Message {
  int from, to;
  double transfer;  // s that both ports are busy; 0 when the receiver reads
  bool receiver_reads;
  bool send_posted = false;
  bool recv_posted = false;
  bool is_at_receiver = false;  ///< which has not posted its receive yet
  int order = 0;                // among the sends of its slot: ports serve earlier ones first
  double arrival = kNotYet;
};

/// What one rank does.
struct Program {
  std::vector<Op> ops;
  std::vector<size_t> round_begin;  // by round, and the end
  std::vector<double> entry;        // by round: s of a core before anything is posted; empty: the plans'
};

/// The plans of a world, compiled.
struct CompiledPlans {
  std::vector<Program> programs;  ///< by rank
  std::vector<Message> messages;
  Prediction totals;  ///< all but the seconds
  double entry = 0;   ///< s of a core before a round of a program that does not say its own
};

/// plans: verified (a receive without a send is a failed check). Cost: O(steps + ranks^2).
CompiledPlans compile_plans(std::span<const Plan> plans, const RunShape& shape, const CostModel& model);

/// Seconds per segment that the busiest rank's ports or core, or the busiest node's cores, have to work.
double busiest_seconds(const CompiledPlans& compiled, const CostModel& model);

}  // namespace tern::simulation
