#include "bench/peers/serve.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "bench/peers/line_socket.h"

namespace tern::bench {
namespace {

struct Batch {
  ExerciseShape shape;
  bool shared = false;
  int n_warmup = 0;
  int n_iters = 1;
};

struct Outcome {
  double seconds = 0;
  size_t n_wrong = 0;
};

Result<Outcome> run(PeerLibrary& library, const Batch& batch) {
  const ExerciseShape& shape = batch.shape;
  TERN_ASSIGN(const std::span<float> send, library.buffer(0, shape.n_send(), batch.shared));
  TERN_ASSIGN(const std::span<float> recv, library.buffer(1, shape.n_recv(), batch.shared));
  fill(shape, send);
  std::fill(recv.begin(), recv.end(), -1e30F);
  for (int i = 0; i < batch.n_warmup; ++i) TERN_TRY(library.call(shape, send, recv));
  TERN_TRY(library.barrier());
  const auto begun = Clock::now();
  for (int i = 0; i < batch.n_iters; ++i) TERN_TRY(library.call(shape, send, recv));
  Outcome outcome;
  outcome.seconds = seconds_since(begun) / batch.n_iters;
  TERN_TRY(library.barrier());  // nobody still needs this rank when it goes to sleep
  outcome.n_wrong = count_wrong(shape, recv);
  return outcome;
}

Result<Batch> parse_batch(std::istringstream& words, const PeerLibrary& library) {
  std::string exercise;
  std::string memory;
  Batch batch;
  words >> exercise >> batch.shape.count >> memory >> batch.n_warmup >> batch.n_iters;
  if (!words || batch.n_iters < 1) return error(Code::kInvalidArgument, "a run command that is not whole");
  TERN_ASSIGN(batch.shape.exercise, parse_exercise(exercise));
  batch.shape.rank = library.rank();
  batch.shape.n_ranks = library.size();
  batch.shared = memory == "shared";
  return batch;
}

std::string answer(PeerLibrary& library, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command != "run") return fmt::format("error unknown command '{}'", command);
  const Result<Batch> batch = parse_batch(words, library);
  if (!batch.ok()) return fmt::format("error {}", batch.error().message);
  const Result<Outcome> outcome = run(library, *batch);
  if (!outcome.ok())
    return fmt::format("{} {}", outcome.error().code == Code::kUnsupported ? "no" : "error",
                       outcome.error().message);
  return fmt::format("{:.9e} {}", outcome->seconds, outcome->n_wrong);
}

}  // namespace

Result<std::span<float>> PlainBuffers::get(int slot, size_t n) {
  const size_t n_bytes = (n * sizeof(float) + 63) / 64 * 64 + 64;
  if (n_bytes_[slot] < n_bytes) {
    memory_[slot].reset();
    memory_[slot].reset(static_cast<float*>(std::aligned_alloc(64, n_bytes)));
    n_bytes_[slot] = memory_[slot] == nullptr ? 0 : n_bytes;
  }
  if (memory_[slot] == nullptr) return error(Code::kOutOfMemory, "no memory for {} bytes", n_bytes);
  return std::span<float>(memory_[slot].get(), n);
}

Status serve(PeerLibrary& library, const std::string& socket_path) {
  TERN_ASSIGN(LineSocket socket, LineSocket::connect(socket_path));
  TERN_TRY(socket.write_line(
      fmt::format("hello {} {} {} {}", library.rank(), library.size(), library.name(), library.version())));
  while (true) {
    TERN_ASSIGN(const std::string line, socket.read_line(Deadline()));
    if (line == "quit") return {};
    TERN_TRY(socket.write_line(answer(library, line)));
  }
}

int exit_status(std::string_view library, const Status& status) {
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: {}\n", library, status.error().message);
  return 1;
}

}  // namespace tern::bench
