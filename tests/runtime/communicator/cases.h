// One collective as a case of a test: run on every rank, and checked element by element.
#pragma once

#include <string>
#include <string_view>

#include "runtime/communicator/communicator.h"
#include "runtime/plan/registry.h"

namespace tern::testing {

struct Case {
  Collective collective;
  std::string_view algorithm;
  size_t n;  ///< elements per rank of the smaller buffer
  Dtype dtype;
  Op op;
  bool in_place;
  bool shared;      ///< buffers from allocate()
  int skew = 0;     ///< elements by which buffers miss their alignment
  CodecSpec codec;  ///< all_reduce and reduce_scatter only

  CallOptions options(const Communicator& comm) const;
  std::string text(const Communicator& comm) const;
};

/// Runs the case; every rank calls it. Failures are GoogleTest's, with the case's text.
void run(Communicator& comm, const Case& c);

bool can_run(const Algorithm& algorithm, Collective collective, int n_ranks);

}  // namespace tern::testing
