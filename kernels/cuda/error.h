// CUDA's error codes as Status.
#pragma once

#include "runtime/base/status.h"

namespace tern::cuda {

/// OK for cudaSuccess; kUnsupported when there is no usable GPU; else kInternal with CUDA's own words.
Status status_of(int code);

}  // namespace tern::cuda
