// Ranks as threads, connected by a transport, for tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace tern {

/// A way to connect a world: a row of the registry, or a mixture that config chooses.
struct Setup {
  std::string name;
  std::function<void(World&)> arrange;  ///< changes each rank's world before it connects
  std::function<Result<std::unique_ptr<Transport>>(const World&)> connect;
};

/// All rows of the registry that can be used here, and the mixtures.
std::vector<Setup> every_setup();
Setup setup_of(std::string_view transport);

/// One rank of a test. Every wait polls all sends under way, as callers must: a send may need its own polls.
struct RankUnderTest {
  World world;
  std::unique_ptr<Transport> transport;
  std::vector<SendRequest*> sends;  ///< under way

  int rank() const { return world.rank; }
  int size() const { return world.size; }
  int next() const { return (world.rank + 1) % world.size; }
  int previous() const { return (world.rank + world.size - 1) % world.size; }

  void send(SendRequest& request);
  /// Polls, and sleeps when there is nothing; kPending only after 60 s.
  Poll wait(SendRequest& request);
  Poll wait(RecvRequest& request);

 private:
  template <class Request>
  Poll wait_for(Request& request);
};

/// Connects `n` ranks, runs `body` on a thread each and returns when all have ended. Each rank's transport
/// lives until all bodies have returned.
void run_ranks(const Setup& setup, int n, const std::function<void(RankUnderTest&)>& body);

/// Bytes that tell sender, receiver and number of the message from any other's.
std::vector<std::byte> payload(int from, int to, int number, size_t n_bytes);

}  // namespace tern
