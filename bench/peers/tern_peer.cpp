// Tern as one of compare's contenders.
#include "bench/peers/serve.h"
#include "runtime/communicator/communicator.h"

namespace tern::bench {
namespace {

class Tern final : public PeerLibrary {
 public:
  explicit Tern(Communicator comm) : comm_(std::move(comm)) {}
  std::string name() const override { return "tern"; }
  std::string version() const override {
    return fmt::format("{} ({})", TERN_PEER_VERSION, comm_.transport());
  }
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }

  Result<std::span<float>> buffer(int slot, size_t n, bool shared) override {
    if (!shared) return plain_.get(slot, n);
    Allocation& memory = shared_[slot];
    if (memory.n_bytes() < n * sizeof(float)) {
      memory = Allocation();  // given back first: both need not fit at once
      TERN_ASSIGN(memory, comm_.allocate(n * sizeof(float)));
    }
    return memory.as<float>().first(n);
  }

  Status barrier() override { return comm_.barrier(); }

  Status call(const ExerciseShape& shape, std::span<const float> send, std::span<float> recv) override {
    switch (shape.exercise) {
      case Exercise::kAllReduce:
        return comm_.all_reduce(send, recv, Op::kSum);
      case Exercise::kReduceScatter:
        return comm_.reduce_scatter(send, recv, Op::kSum);
      case Exercise::kAllGather:
        return comm_.all_gather(send, recv);
      case Exercise::kAllToAll:
        return comm_.all_to_all(send, recv);
      case Exercise::kBroadcast:
        break;
    }
    const bool is_root = comm_.rank() == 0;
    const std::span<float> data =
        is_root ? std::span<float>(const_cast<float*>(send.data()), send.size()) : recv;
    return comm_.broadcast(data, 0);
  }

 private:
  Communicator comm_;
  Allocation shared_[2];
  PlainBuffers plain_;
};

Status run(const std::string& socket_path) {
  TERN_ASSIGN(const Config config, Config::from_environment());
  TERN_ASSIGN(const World world, World::from_environment(config));
  {
    TERN_ASSIGN(Communicator comm, Communicator::create(world));
    Tern library(std::move(comm));
    TERN_TRY(serve(library, socket_path));
  }
  world.store->leave();
  return {};
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} SOCKET (compare starts it)\n", argv[0]);
    return 2;
  }
  return tern::bench::exit_status("tern", tern::bench::run(argv[1]));
}
