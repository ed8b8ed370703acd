// Learning rates over the updates: DeepSpeed's warm-up schedules.
#pragma once

#include <cstdint>

namespace tern::trainer {

/// A schedule is a function of the update's number, so nothing of it needs saving.
struct Schedule {
  enum class Kind : uint8_t { kConstant, kWarmup, kWarmupDecay, kWarmupCosine };
  Kind kind = Kind::kConstant;
  bool linear_warmup = false;  ///< false: logarithmic, DeepSpeed's default
  double base_lr = 1e-3;       ///< the optimiser's: kConstant and kWarmupCosine
  double min_lr = 0.0;         ///< kWarmup, kWarmupDecay: before the first update
  double max_lr = 1e-3;        ///< kWarmup, kWarmupDecay: at the end of warm-up
  int64_t warmup_steps = 1000;
  int64_t total_steps = 0;        ///< kWarmupDecay, kWarmupCosine: end of the decay
  double warmup_min_ratio = 0.0;  ///< kWarmupCosine: of base_lr
  double cos_min_ratio = 1e-4;    ///< kWarmupCosine: of base_lr

  /// The rate of the update after `n_updates` others.
  ///
  /// Warm-up is ln(n+1)/ln(N) or n/N of the way, N = max(2, warmup_steps), then constant, linear to 0 at
  /// total_steps, or half a cosine to cos_min_ratio. DeepSpeed applies the value of n one update later.
  /// Source: DeepSpeed 0.16, runtime/lr_schedules.py (WarmupLR, WarmupDecayLR, WarmupCosineLR).
  double at(int64_t n_updates) const;
};

}  // namespace tern::trainer
