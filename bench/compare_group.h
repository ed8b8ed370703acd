// One library's ranks as processes that compare starts, asks and ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "bench/peers/exercise.h"
#include "bench/peers/line_socket.h"

namespace tern::bench {

/// How a library's ranks are started.
enum class Launch : uint8_t {
  kEnvironment,  ///< one process per rank with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
  kOpenMpi,      ///< mpirun
  kMpich,        ///< mpiexec
};

/// A contender: a row of compare's table.
struct Contender {
  std::string name;      ///< "tern", "openmpi", "mpich", "gloo"
  std::string program;   ///< the peer program's path
  std::string launcher;  ///< mpirun's path; "" for kEnvironment
  Launch launch = Launch::kEnvironment;
};

struct GroupOptions {
  int n_ranks = 2;
  std::string folder;                 ///< private; the socket and the ranks' rendezvous files lie in it
  std::string mpirun_args;            ///< words for Open MPI's mpirun
  std::vector<std::string> settings;  ///< NAME=value for every rank
};

/// A batch of calls to time.
struct BatchRequest {
  Exercise exercise = Exercise::kAllReduce;
  size_t count = 0;
  bool shared = true;
  int n_warmup = 1;
  int n_iters = 1;
};

struct BatchAnswer {
  double seconds = 0;  ///< per call, of the slowest rank
  size_t n_wrong = 0;  ///< over all ranks
};

/// The ranks of one library. At most one group runs at a time; the others' ranks sleep in poll(). Move-only;
/// ends the processes when it goes.
class Group {
 public:
  /// Starts the ranks and waits for them. Errors: kNotFound (a program is missing), kTimeout, kPeerLost.
  static Result<Group> start(const Contender& contender, const GroupOptions& options);
  Group(Group&&) noexcept = default;
  Group& operator=(Group&&) = delete;
  ~Group();

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  /// Nothing when the library does not have the collective. Errors: kPeerLost, kTimeout, and what the library
  /// says.
  Result<std::optional<BatchAnswer>> run(const BatchRequest& request);

 private:
  Group() = default;
  Status adopt(LineListener& listener, int n_ranks);
  Result<std::optional<BatchAnswer>> ask(const BatchRequest& request);

  std::string name_;
  std::string version_;
  bool broken_ = false;  // some rank did not come or did not answer: the processes are ended by force
  std::vector<pid_t> processes_;
  std::vector<LineSocket> ranks_;
};

}  // namespace tern::bench
