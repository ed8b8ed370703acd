// The size of a launch, the same for the GPU and for the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::simt {

inline constexpr uint32_t kWarpSize = 32;

/// <<<grid, block, shared_bytes>>>; one-dimensional.
struct Shape {
  uint32_t grid = 0;        ///< blocks
  uint32_t block = 0;       ///< threads of each
  size_t shared_bytes = 0;  ///< dynamic shared memory of each block
};

}  // namespace tern::simt
