#include "runtime/bootstrap/mpi.h"

// Open MPI and MPICH: without the C++ bindings of old, which would need another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace tern {

Result<std::unique_ptr<MpiSession>> MpiSession::create() {
  std::unique_ptr<MpiSession> session(new MpiSession);
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised == 0) {
    int provided = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
      return error(Code::kIo, "MPI_Init_thread failed");
    }
    session->owns_mpi_ = true;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &session->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &session->size_);
  return session;
}

MpiSession::~MpiSession() {
  if (owns_mpi_) MPI_Finalize();
}

Result<std::string> MpiSession::broadcast(std::string text) {
  auto n_bytes = static_cast<int>(text.size());
  if (MPI_Bcast(&n_bytes, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
    return error(Code::kIo, "MPI_Bcast failed");
  text.resize(static_cast<size_t>(n_bytes));
  if (MPI_Bcast(text.data(), n_bytes, MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS) {
    return error(Code::kIo, "MPI_Bcast of {} bytes failed", n_bytes);
  }
  return text;
}

}  // namespace tern
