#include "runtime/bootstrap/mpi.h"

namespace tern {

Result<std::unique_ptr<MpiSession>> MpiSession::create() {
  return error(Code::kUnsupported,
               "started by mpirun, but Tern was built without Open MPI: set RANK, WORLD_SIZE, MASTER_ADDR "
               "and MASTER_PORT");
}

MpiSession::~MpiSession() = default;

Result<std::string> MpiSession::broadcast(std::string text) {
  return text;
}

}  // namespace tern
