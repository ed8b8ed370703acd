// All launchers.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/q4h.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/sign1.h"
#include "kernels/cuda/topk.h"

namespace tern::cuda {

#define ROW(Args, name, per_thread, bytes_moved) Status launch(Stream stream, const Args& args);
#include "kernels/cuda/launchers.def"
#undef ROW

}  // namespace tern::cuda
