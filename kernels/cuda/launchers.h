// All launchers.
#pragma once

#include "kernels/cuda/q8.h"
#include "kernels/cuda/topk.h"
