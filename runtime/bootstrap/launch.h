// Who started this process, by what it left in the environment. A pure function, so that tests can play every
// launcher.
//
// In this order:
// 1. RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT: torchrun, or set by hand (the last two may be missing in a
// world of
//    one). Under torchrun (TORCHELASTIC_RUN_ID is set) its own store may sit at MASTER_PORT, so Tern's is at
//    MASTER_PORT + 1.
// 2. OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE: Open MPI's mpirun. With MASTER_ADDR and MASTER_PORT the
// rendezvous is
//    as in 1, otherwise MPI hands out the address.
// 3. SLURM_PROCID with SLURM_STEP_NUM_TASKS or SLURM_NTASKS: srun. Address: MASTER_ADDR, else the first host
// of
//    SLURM_STEP_NODELIST, else SLURM_LAUNCH_NODE_IPADDR. Port: MASTER_PORT, else made of job and step
//    numbers. Passed over when PMI_RANK says something else (MPICH's mpirun inside a batch script).
// 4. PMI_RANK, PMI_SIZE: MPICH's or Intel's mpirun, together with MASTER_ADDR and MASTER_PORT.
// 5. None of these: a world of one.
// One of a launcher's pair without the other is an error: each process would be a world of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tern {

enum class Rendezvous : uint8_t { kAlone, kTcp, kMpi };

struct Launch {
  Rendezvous rendezvous = Rendezvous::kAlone;
  int rank = 0;
  int size = 1;
  std::string address;
  int port = 0;
  bool operator==(const Launch&) const = default;
};

using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view variable)>;

/// Errors: kInvalidArgument naming the variable that is missing or is no number in range; kUnsupported under
/// an mpirun that Tern cannot ask for an address.
Result<Launch> detect_launch(const EnvironmentLookup& lookup);

/// "node[07-12,20]" -> "node07"; "a1,b2" -> "a1".
std::string first_host_of(std::string_view slurm_node_list);

}  // namespace tern
