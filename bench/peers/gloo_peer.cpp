// Gloo over TCP as compare's peer. RANK and WORLD_SIZE say who this is; the ranks meet in files beside the
// socket.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>

#include "bench/peers/serve.h"
#include "runtime/base/config.h"

namespace tern::bench {
namespace {

class Gloo final : public PeerLibrary {
 public:
  Gloo(int rank, int size, const std::string& folder)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    gloo::rendezvous::FileStore store(folder);
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "localhost";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context_->connectFullMesh(store, device);
  }
  std::string name() const override { return "gloo"; }
  std::string version() const override { return TERN_PEER_VERSION; }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  Result<std::span<float>> buffer(int slot, size_t n, bool /*shared*/) override {
    return buffers_.get(slot, n);
  }
  Status barrier() override {
    return guarded([&] {
      gloo::BarrierOptions options(context_);
      gloo::barrier(options);
    });
  }

  Status call(const ExerciseShape& shape, std::span<const float> send, std::span<float> recv) override {
    auto* in = const_cast<float*>(send.data());
    switch (shape.exercise) {
      case Exercise::kAllReduce:
        return guarded([&] { all_reduce(in, recv); });
      case Exercise::kReduceScatter:
        return error(Code::kUnsupported, "Gloo's present interface has no reduce_scatter");
      case Exercise::kAllGather:
        return guarded([&] { all_gather(in, shape.count, recv); });
      case Exercise::kAllToAll:
        return guarded([&] { all_to_all(in, recv); });
      case Exercise::kBroadcast:
        break;
    }
    return guarded([&] { broadcast(rank() == 0 ? in : recv.data(), shape.count); });
  }

 private:
  template <class F>
  static Status guarded(F&& call) {
    try {
      call();
    } catch (const std::exception& e) {
      return error(Code::kInternal, "{}", e.what());
    }
    return {};
  }

  void all_reduce(float* in, std::span<float> recv) {
    gloo::AllreduceOptions options(context_);
    options.setInput(in, recv.size());
    options.setOutput(recv.data(), recv.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }
  void all_gather(float* in, size_t count, std::span<float> recv) {
    gloo::AllgatherOptions options(context_);
    options.setInput(in, count);
    options.setOutput(recv.data(), recv.size());
    gloo::allgather(options);
  }
  void all_to_all(float* in, std::span<float> recv) {
    gloo::AlltoallOptions options(context_);
    options.setInput(in, recv.size());
    options.setOutput(recv.data(), recv.size());
    gloo::alltoall(options);
  }
  void broadcast(float* data, size_t count) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(data, count);
    options.setRoot(0);
    gloo::broadcast(options);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  PlainBuffers buffers_;
};

int run(const std::string& socket_path) {
  const int rank = std::stoi(environment("RANK").value_or("0"));
  const int size = std::stoi(environment("WORLD_SIZE").value_or("1"));
  Gloo library(rank, size, socket_path.substr(0, socket_path.rfind('/')));
  return exit_status(library.name(), serve(library, socket_path));
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} SOCKET (compare starts it)\n", argv[0]);
    return 2;
  }
  try {
    return tern::bench::run(argv[1]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "gloo: {}\n", e.what());
    return 1;
  }
}
