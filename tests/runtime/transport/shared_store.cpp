#include "tests/runtime/transport/shared_store.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace tern {

std::shared_ptr<SharedStore> SharedStore::create() {
  void* memory =
      ::mmap(nullptr, sizeof(SharedStore), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TERN_CHECK(memory != MAP_FAILED);
  return {new (memory) SharedStore(), [](SharedStore* store) { ::munmap(store, sizeof(SharedStore)); }};
}

SharedStore::Entry* SharedStore::find(std::string_view key) {
  const uint32_t n = n_entries_.load();
  for (uint32_t i = 0; i < n; ++i) {
    if (entries_[i].filled.load() && key == entries_[i].key) return &entries_[i];
  }
  return nullptr;
}

Status SharedStore::set(std::string_view key, std::string_view value) {
  const uint32_t i = n_entries_.fetch_add(1);
  TERN_CHECK(i < 512 && key.size() < sizeof(Entry::key) && value.size() < sizeof(Entry::value));
  Entry& entry = entries_[i];
  std::copy(key.begin(), key.end(), entry.key);
  std::copy(value.begin(), value.end(), entry.value);
  entry.filled.store(true);
  return {};
}

Result<std::string> SharedStore::get(std::string_view key, Deadline deadline) {
  while (true) {
    if (const Entry* entry = find(key)) return std::string(entry->value);
    if (const auto lost = failure()) return *lost;
    if (deadline.passed()) return error(Code::kTimeout, "nobody set {}", key);
    ::sched_yield();
  }
}

std::vector<World> worlds_over(const std::shared_ptr<Store>& store, int n, bool in_process) {
  std::vector<World> worlds(static_cast<size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    World& world = worlds[static_cast<size_t>(rank)];
    world.rank = world.local_rank = rank;
    world.size = world.local_size = n;
    world.host_id = "here";
    world.host_ids.assign(static_cast<size_t>(n), "here");
    world.in_process = in_process;
    world.store = store;
    world.heap = Heap::create(size_t{64} << 20).value();
  }
  return worlds;
}

}  // namespace tern
