// The words that kernel bodies are written in: nvcc's own, or those of the interpreter on the host. The only
// place that asks which compiler it is.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/words_nvcc.cuh"
#else
#include "kernels/simt/checked_memory.h"
#include "kernels/simt/words.h"
#endif

namespace tern::cuda {

inline constexpr uint32_t kAllLanes = 0xFFFFFFFF;

}  // namespace tern::cuda
