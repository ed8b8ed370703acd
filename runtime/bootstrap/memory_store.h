// The store of ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "runtime/bootstrap/store.h"

namespace tern {

/// One store per rank, all over the same keys; the keys live as long as the last of them.
std::vector<std::shared_ptr<Store>> make_memory_stores(int n_ranks);

}  // namespace tern
