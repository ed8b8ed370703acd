// How algorithms write their steps down.
#pragma once

#include "runtime/plan/registry.h"

namespace tern {

constexpr Ref make_ref(Buffer buffer, int chunk, int n_chunks, int slot) {
  return {buffer, static_cast<int16_t>(chunk), static_cast<int16_t>(n_chunks), static_cast<int16_t>(slot)};
}
constexpr Ref input(int chunk, int n_chunks = 1) {
  return make_ref(Buffer::kInput, chunk, n_chunks, 0);
}
constexpr Ref output(int chunk, int n_chunks = 1) {
  return make_ref(Buffer::kOutput, chunk, n_chunks, 0);
}
/// What barriers send.
constexpr Ref nothing() {
  return input(0, 0);
}

/// Collects the steps of one rank in any order; finish() sorts them by round, keeping the order within one.
class PlanBuilder {
 public:
  PlanBuilder(const PlanRequest& request, std::string_view algorithm, int n_chunks);

  /// Says that steps of this or other ranks work on several chunks at once.
  void moves_runs() { plan_.moves_runs = true; }
  /// Says that the steps are wrong where kInput and kOutput share bytes.
  void out_of_place_only() { plan_.out_of_place_only = true; }
  void send(int round, int peer, Ref src);
  void recv(int round, int peer, Ref dst);
  void recv_reduce(int round, int peer, Ref dst);
  void copy(int round, Ref src, Ref dst);
  void reduce(int round, Ref src, Ref dst);

  /// n_rounds: of the whole collective, also where this rank has nothing to do in the last ones.
  Plan finish(int n_rounds) &&;

 private:
  Step& add(StepKind kind, int round, int peer = -1);
  Plan plan_;
};

/// The plan of a world of one rank: its input is the result, whatever the collective.
Plan plan_alone(const PlanRequest& request, std::string_view algorithm);

/// Rounds in which growing `radix`-fold reaches n: the least k with radix^k >= n.
constexpr int ceil_log(int n, int radix) {
  int k = 0;
  for (int64_t reached = 1; reached < n; reached *= radix) ++k;
  return k;
}
constexpr int ceil_log2(int n) {
  return ceil_log(n, 2);
}

}  // namespace tern
