// Runs a test once per instruction set: derive a fixture from OnSimdTarget and instantiate it with
// TERN_ON_EVERY_SIMD_TARGET(Fixture).
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/targets.h"

namespace tern::test {

inline std::vector<std::string> simd_target_names() {
  const auto targets = simd_targets();
  return {targets.begin(), targets.end()};
}

class OnSimdTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { only_.emplace(GetParam()); }

 private:
  std::optional<OnlySimdTarget> only_;
};

inline std::string target_name(const testing::TestParamInfo<std::string>& param) {
  return param.param;
}

}  // namespace tern::test

#define TERN_ON_EVERY_SIMD_TARGET(fixture)                                                       \
  INSTANTIATE_TEST_SUITE_P(Targets, fixture, testing::ValuesIn(tern::test::simd_target_names()), \
                           tern::test::target_name)
