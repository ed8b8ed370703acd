// All launchers.
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/q8.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/topk.h"
