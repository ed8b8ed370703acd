// The line that shows how a run goes.
#pragma once

#include <string>

#include "trainer/metrics.h"

namespace tern::trainer {

struct ProgressView {
  int64_t n_steps = 1;
  double elapsed_seconds = 0;  ///< of this process's steps
  int64_t n_done_here = 1;     ///< steps of this process, for the time left
  bool bar = false;            ///< a terminal: a bar in front
};

/// "step 40/160  25 %  loss 2.413  lr 1.0e-03  |g| 0.81  2104 tok/s  comm 31 ms  exposed 3 %  wire 33.1 MB
/// (1/1.6)  left 1:12"
std::string progress_line(const StepRecord& record, const ProgressView& view);

}  // namespace tern::trainer
