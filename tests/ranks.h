// Ranks as threads of the test's process.
#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace tern::testing {

/// Settings for tests: short deadlines, so that a hang is a failure and not a stuck suite.
inline Config quick_config() {
  Config config;
  config.timeout = Seconds(30);
  config.heap_bytes = uint64_t{256} << 20;
  return config;
}

/// Runs body(world) on one thread per rank and waits for all of them.
template <class Body>
void on_worlds(int n_ranks, const Config& config, const Body& body) {
  auto worlds = World::in_process_world(n_ranks, config);
  ASSERT_TRUE(worlds.ok()) << worlds.error().to_string();
  std::vector<std::thread> threads;
  threads.reserve(worlds->size());
  for (World& world : *worlds) threads.emplace_back([&body, &world] { body(world); });
  for (std::thread& thread : threads) thread.join();
}

/// Runs body(communicator) on one thread per rank.
template <class Body>
void on_ranks(int n_ranks, const Config& config, const Body& body) {
  on_worlds(n_ranks, config, [&](const World& world) {
    auto communicator = Communicator::create(world);
    ASSERT_TRUE(communicator.ok()) << communicator.error().to_string();
    body(*communicator);
  });
}

}  // namespace tern::testing
