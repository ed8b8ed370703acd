// An MPI as compare's peer; compiled once per MPI that CMake finds.
#include <mpi.h>

#include "bench/peers/serve.h"

namespace tern::bench {
namespace {

Status status_of(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return error(Code::kInternal, "{}: {}", call, std::string_view(text, static_cast<size_t>(length)));
}

class Mpi final : public PeerLibrary {
 public:
  Mpi() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  std::string name() const override { return TERN_PEER_NAME; }
  std::string version() const override { return TERN_PEER_VERSION; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<std::span<float>> buffer(int slot, size_t n, bool /*shared*/) override {
    return buffers_.get(slot, n);
  }
  Status barrier() override { return status_of(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  Status call(const ExerciseShape& shape, std::span<const float> send, std::span<float> recv) override {
    const auto n = static_cast<int>(shape.count);
    switch (shape.exercise) {
      case Exercise::kAllReduce:
        return status_of(MPI_Allreduce(send.data(), recv.data(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                         "MPI_Allreduce");
      case Exercise::kReduceScatter:
        return status_of(
            MPI_Reduce_scatter_block(send.data(), recv.data(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
            "MPI_Reduce_scatter_block");
      case Exercise::kAllGather:
        return status_of(MPI_Allgather(send.data(), n, MPI_FLOAT, recv.data(), n, MPI_FLOAT, MPI_COMM_WORLD),
                         "MPI_Allgather");
      case Exercise::kAllToAll:
        return status_of(MPI_Alltoall(send.data(), n, MPI_FLOAT, recv.data(), n, MPI_FLOAT, MPI_COMM_WORLD),
                         "MPI_Alltoall");
      case Exercise::kBroadcast:
        break;
    }
    // The root sends from its send buffer: nobody copies.
    void* data = rank_ == 0 ? const_cast<float*>(send.data()) : recv.data();
    TERN_TRY(status_of(MPI_Bcast(data, n, MPI_FLOAT, 0, MPI_COMM_WORLD), "MPI_Bcast"));
    return {};
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  PlainBuffers buffers_;
};

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} SOCKET (compare starts it)\n", argv[0]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  int status = 0;
  {
    tern::bench::Mpi mpi;
    status = tern::bench::exit_status(mpi.name(), tern::bench::serve(mpi, argv[1]));
  }
  MPI_Finalize();
  return status;
}
