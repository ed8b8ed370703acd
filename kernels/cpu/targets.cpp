#include "kernels/targets.h"

#include <hwy/targets.h>

#include "runtime/base/status.h"

namespace tern {

std::vector<std::string_view> simd_targets() {
  std::vector<std::string_view> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets())
    names.emplace_back(hwy::TargetName(target));
  return names;
}

OnlySimdTarget::OnlySimdTarget(std::string_view name) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  TERN_CHECK(!"an instruction set of simd_targets()");
}

OnlySimdTarget::~OnlySimdTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace tern
