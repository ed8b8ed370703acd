// The one table of configuration keys of tern-train.
#pragma once

#include <span>

#include "trainer/config/schema.h"

namespace tern::trainer {

/// Every key of a RUN.json, with `model` and `deepspeed` expanded when they are paths.
std::span<const Key> run_keys();

}  // namespace tern::trainer
