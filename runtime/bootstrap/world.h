// How processes (or threads, in tests) become the ranks of one world.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/heap.h"
#include "runtime/bootstrap/store.h"

namespace tern {

/// A rank's place in a world that meets over TCP.
struct TcpPlace {
  int rank = 0;
  int size = 1;
  std::string address;  ///< of rank 0: a name or a number
  int port = 0;
};

/// This process's place among the ranks. Cheap to copy: copies share the store and the heap, which live as
/// long as the last copy (shared ownership because communicators outlive the World value they were made
/// from).
struct World {
  int rank = 0;
  int size = 1;
  /// Equal on ranks that share memory: boot id + host name, or TERN_HOST_ID (so that one machine can play
  /// several).
  std::string host_id;
  std::vector<std::string> host_ids;  ///< of every rank, in rank order
  int local_rank = 0;                 ///< place among the ranks of this host
  int local_size = 1;
  std::string address;      ///< numeric IP address of this rank on the way to the store's host
  bool in_process = false;  ///< ranks are threads of one process (tests)
  Config config;
  std::shared_ptr<Store> store;
  std::shared_ptr<Heap> heap;

  /// Finds out how this process was started (rules in launch.h): RANK + WORLD_SIZE + MASTER_ADDR +
  /// MASTER_PORT, or Open MPI's environment (then MPI only hands out the address of the store), or srun's;
  /// else a world of one. Errors: kInvalidArgument naming the variable; kTimeout naming the ranks that did
  /// not come within TERN_BOOTSTRAP_TIMEOUT; kUnsupported when started by mpirun and built without MPI.
  static Result<World> from_environment(const Config& config);
  /// MPI broadcasts the store's address and a random secret, and is finalised with the last copy of the World
  /// unless the program had initialised it itself. Errors: those of from_tcp(); kUnsupported when built
  /// without MPI.
  static Result<World> from_mpi(const Config& config);
  /// TCP rendezvous at place.address:place.port, where rank 0 listens. Ranks prove to each other that they
  /// know config.secret. Errors: kInvalidArgument (rank, size, port or address; another secret; a rank that
  /// is there already), kIo (rank 0 cannot listen), kTimeout naming the ranks that did not come.
  static Result<World> from_tcp(const TcpPlace& place, const Config& config);
  /// `size` ranks as threads of this process; one World each.
  static Result<std::vector<World>> in_process_world(int size, const Config& config);

  std::vector<int> all_ranks() const;  ///< 0..size-1
};

/// Owns a run of bytes in the world's heap that peers on the node read in place; move-only.
class Allocation {
 public:
  Allocation() = default;
  Allocation(std::shared_ptr<Heap> heap, void* data, size_t n_bytes);
  ~Allocation();
  Allocation(Allocation&& other) noexcept;
  Allocation& operator=(Allocation&& other) noexcept;
  void* data() const { return data_; }
  size_t n_bytes() const { return n_bytes_; }
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), n_bytes_ / sizeof(T)};
  }

 private:
  std::shared_ptr<Heap> heap_;
  void* data_ = nullptr;
  size_t n_bytes_ = 0;
};

/// Memory that collectives use without a copy: 64-byte aligned, zeroed on first use, readable by the node's
/// other ranks. Errors: kOutOfMemory (raise TERN_HEAP_BYTES).
Result<Allocation> allocate(const World& world, size_t n_bytes);

}  // namespace tern
