#include "runtime/communicator/communicator.h"

#include <limits>

#include "runtime/communicator/engine.h"

namespace tern {

namespace {

Status check_memory(const void* data, size_t n, std::string_view which) {
  if (data == nullptr && n > 0) {
    return error(Code::kInvalidArgument, "the {} buffer is null but holds {} elements", which, n);
  }
  return {};
}

// True when the two runs share bytes.
bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto a0 = reinterpret_cast<uintptr_t>(a);
  const auto b0 = reinterpret_cast<uintptr_t>(b);
  return a0 < b0 + b_bytes && b0 < a0 + a_bytes;
}

// in and out may be disjoint, or `small` exactly the `part`-th piece of `large` (in place).
Status check_overlap(const ConstView& large, const ConstView& small, size_t part) {
  if (!overlap(large.data, large.n_bytes(), small.data, small.n_bytes())) return {};
  const auto* in_place = static_cast<const std::byte*>(large.data) + part * small.n_bytes();
  if (in_place == small.data) return {};
  return error(Code::kInvalidArgument,
               "input and output overlap by {} bytes from each other's start; allowed: disjoint, or in place "
               "at byte {}",
               static_cast<const std::byte*>(small.data) - static_cast<const std::byte*>(large.data),
               part * small.n_bytes());
}

Status check_types(const ConstView& in, const View& out) {
  if (in.dtype != out.dtype) {
    return error(Code::kInvalidArgument, "input is {} but output is {}; they must be equal", name(in.dtype),
                 name(out.dtype));
  }
  TERN_TRY(check_memory(in.data, in.n, "input"));
  return check_memory(out.data, out.n, "output");
}

// Sharded collectives: `large` holds n_ranks pieces of `small`.
Status check_shares(const ConstView& large, const ConstView& small, int n_ranks, std::string_view which) {
  const auto ranks = static_cast<size_t>(n_ranks);
  if (small.n > std::numeric_limits<size_t>::max() / ranks / size_of(small.dtype)) {
    return error(Code::kInvalidArgument, "{} elements on each of {} ranks overflow the address space",
                 small.n, n_ranks);
  }
  if (large.n == small.n * ranks) return {};
  return error(Code::kInvalidArgument, "{} holds {} elements; it must hold {} x {} = {}", which, large.n,
               n_ranks, small.n, small.n * ranks);
}

Result<Job> all_reduce_job(const ConstView& in, const View& out, Op op, const CallOptions& options) {
  TERN_TRY(check_types(in, out));
  if (in.n != out.n) {
    return error(Code::kInvalidArgument, "all_reduce: input holds {} elements but output holds {}", in.n,
                 out.n);
  }
  TERN_TRY(check_overlap(in, out, 0));
  return Job{.collective = Collective::kAllReduce,
             .in = in,
             .out = out,
             .count = in.n,
             .op = op,
             .options = options};
}

Result<Job> reduce_scatter_job(const ConstView& in, const View& out, Op op, const Communicator& comm) {
  TERN_TRY(check_types(in, out));
  TERN_TRY(check_shares(in, out, comm.size(), "reduce_scatter: input"));
  TERN_TRY(check_overlap(in, out, static_cast<size_t>(comm.rank())));
  return Job{.collective = Collective::kReduceScatter, .in = in, .out = out, .count = in.n, .op = op};
}

Result<Job> all_gather_job(const ConstView& in, const View& out, const Communicator& comm) {
  TERN_TRY(check_types(in, out));
  TERN_TRY(check_shares(out, in, comm.size(), "all_gather: output"));
  TERN_TRY(check_overlap(out, in, static_cast<size_t>(comm.rank())));
  return Job{.collective = Collective::kAllGather, .in = in, .out = out, .count = out.n};
}

Result<Job> broadcast_job(const View& data, int root, const Communicator& comm) {
  TERN_TRY(check_memory(data.data, data.n, "broadcast"));
  if (root < 0 || root >= comm.size()) {
    return error(Code::kInvalidArgument, "broadcast: root {} is not a rank; allowed: 0..{}", root,
                 comm.size() - 1);
  }
  return Job{.collective = Collective::kBroadcast, .in = data, .out = data, .count = data.n, .root = root};
}

}  // namespace

struct Communicator::Impl {
  explicit Impl(std::unique_ptr<Engine> e) : engine(std::move(e)) {}
  std::unique_ptr<Engine> engine;
};

Result<Communicator> Communicator::create(const World& world) {
  TERN_ASSIGN(auto engine, Engine::create(world));
  return Communicator(std::make_unique<Impl>(std::move(engine)));
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const {
  return impl_->engine->world().rank;
}
int Communicator::size() const {
  return impl_->engine->world().size;
}
const World& Communicator::world() const {
  return impl_->engine->world();
}
std::string_view Communicator::transport() const {
  return impl_->engine->transport_name();
}
Result<Allocation> Communicator::allocate(size_t n_bytes) {
  return tern::allocate(world(), n_bytes);
}
const CallReport& Communicator::last_report() const {
  return impl_->engine->last_report();
}
void Communicator::abort(const std::string& why) {
  impl_->engine->abort(why);
}

Status Communicator::all_reduce(ConstView in, View out, Op op, const CallOptions& options) {
  TERN_ASSIGN(const Job job, all_reduce_job(in, out, op, options));
  return impl_->engine->run(job);
}

Status Communicator::reduce_scatter(ConstView in, View out, Op op, const CallOptions& options) {
  TERN_ASSIGN(Job job, reduce_scatter_job(in, out, op, *this));
  job.options = options;
  return impl_->engine->run(job);
}

Status Communicator::all_gather(ConstView in, View out, const CallOptions& options) {
  TERN_ASSIGN(Job job, all_gather_job(in, out, *this));
  job.options = options;
  return impl_->engine->run(job);
}

Status Communicator::broadcast(View data, int root, const CallOptions& options) {
  TERN_ASSIGN(Job job, broadcast_job(data, root, *this));
  job.options = options;
  return impl_->engine->run(job);
}

Status Communicator::barrier(const CallOptions& options) {
  return impl_->engine->run({.collective = Collective::kBarrier, .options = options});
}

Result<Work> Communicator::all_reduce_async(ConstView in, View out, Op op, const CallOptions& options) {
  TERN_ASSIGN(const Job job, all_reduce_job(in, out, op, options));
  TERN_ASSIGN(auto state, impl_->engine->start(job));
  return Work(std::move(state));
}

Result<Work> Communicator::reduce_scatter_async(ConstView in, View out, Op op, const CallOptions& options) {
  TERN_ASSIGN(Job job, reduce_scatter_job(in, out, op, *this));
  job.options = options;
  TERN_ASSIGN(auto state, impl_->engine->start(job));
  return Work(std::move(state));
}

Result<Work> Communicator::all_gather_async(ConstView in, View out, const CallOptions& options) {
  TERN_ASSIGN(Job job, all_gather_job(in, out, *this));
  job.options = options;
  TERN_ASSIGN(auto state, impl_->engine->start(job));
  return Work(std::move(state));
}

Result<Work> Communicator::broadcast_async(View data, int root, const CallOptions& options) {
  TERN_ASSIGN(Job job, broadcast_job(data, root, *this));
  job.options = options;
  TERN_ASSIGN(auto state, impl_->engine->start(job));
  return Work(std::move(state));
}

}  // namespace tern
