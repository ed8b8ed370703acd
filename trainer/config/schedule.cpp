#include "trainer/config/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tern::trainer {

double Schedule::at(int64_t n_updates) const {
  if (kind == Kind::kConstant) return base_lr;
  const auto warmup = std::max<int64_t>(2, warmup_steps);
  const auto n = static_cast<double>(n_updates);
  const double way = linear_warmup ? n / static_cast<double>(warmup)
                                   : std::log(n + 1.0) / std::log(static_cast<double>(warmup));
  const auto left = static_cast<double>(total_steps - n_updates);
  const auto decay_steps = static_cast<double>(std::max<int64_t>(1, total_steps - warmup));
  if (kind == Kind::kWarmupCosine) {
    if (n_updates < warmup) return base_lr * (warmup_min_ratio + (1.0 - warmup_min_ratio) * way);
    const double done = std::min(1.0, (n - static_cast<double>(warmup) + 1.0) / decay_steps);
    const double cosine = (1.0 + std::cos(std::numbers::pi * done)) / 2.0;
    return base_lr * (cos_min_ratio + (1.0 - cos_min_ratio) * cosine);
  }
  double share = 1.0;
  if (n_updates < warmup) {
    share = way;
  } else if (kind == Kind::kWarmupDecay) {
    share = std::clamp(left / decay_steps, 0.0, 1.0);
  }
  return min_lr + (max_lr - min_lr) * share;
}

}  // namespace tern::trainer
