#include "runtime/communicator/communicator.h"

#include <algorithm>
#include <array>

#include "runtime/communicator/calibrate.h"
#include "runtime/communicator/engine.h"

namespace tern {

struct Communicator::Impl {
  explicit Impl(std::unique_ptr<Engine> e) : engine(std::move(e)) {}
  std::unique_ptr<Engine> engine;
};

Result<Communicator> Communicator::create(const World& world) {
  TERN_ASSIGN(Calibration speeds, speeds_of(world));
  TERN_ASSIGN(auto engine, Engine::create(world, {.members = {world.all_ranks(), world.rank},
                                                  .key = "communicator",
                                                  .speeds = std::move(speeds)}));
  return Communicator(std::make_unique<Impl>(std::move(engine)));
}

Result<Communicator> Communicator::split(int color, int key) {
  if (color < 0)
    return error(Code::kInvalidArgument, "split: color {} is negative; allowed: 0 and more", color);
  const std::array<int, 2> mine = {color, key};
  std::vector<int> all(mine.size() * static_cast<size_t>(size()));
  TERN_TRY(all_gather(std::span<const int>(mine), std::span<int>(all)));
  std::vector<int> order;  // ranks of this communicator
  for (int r = 0; r < size(); ++r)
    if (all[2 * static_cast<size_t>(r)] == color) order.push_back(r);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return all[2 * static_cast<size_t>(a) + 1] < all[2 * static_cast<size_t>(b) + 1];
  });
  Members members;
  for (const int r : order) {
    if (r == rank()) members.self = members.size();
    members.ranks.push_back(impl_->engine->members().ranks[static_cast<size_t>(r)]);
  }
  TERN_ASSIGN(auto engine,
              Engine::create(world(), {.members = std::move(members),
                                       .key = fmt::format("{}/{}", impl_->engine->next_key(), color),
                                       .speeds = impl_->engine->speeds()}));
  return Communicator(std::make_unique<Impl>(std::move(engine)));
}

Result<Communicator> Communicator::duplicate() {
  return split(0, rank());
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const {
  return impl_->engine->members().self;
}
int Communicator::size() const {
  return impl_->engine->members().size();
}
const World& Communicator::world() const {
  return impl_->engine->world();
}
std::string_view Communicator::transport() const {
  return impl_->engine->transport_name();
}
Result<Allocation> Communicator::allocate(size_t n_bytes) const {
  return tern::allocate(world(), n_bytes);
}
const CallReport& Communicator::last_report() const {
  return impl_->engine->last_report();
}
CodecCounts Communicator::codec_counts() const {
  return impl_->engine->codec_counts();
}
void Communicator::abort(const std::string& why) {
  impl_->engine->abort(why);
}

Status Communicator::run(const Operation& operation) {
  return impl_->engine->run({&operation, 1});
}
Status Communicator::run_group(std::span<const Operation> operations) {
  return impl_->engine->run(operations);
}
Result<Work> Communicator::start(const Operation& operation) {
  return start_group({&operation, 1});
}
Result<Work> Communicator::start_group(std::span<const Operation> operations) {
  TERN_ASSIGN(auto state, impl_->engine->start(operations));
  return Work(std::move(state));
}

Status Communicator::all_reduce(ConstView in, View out, Op op, const CallOptions& options) {
  return run(ops::all_reduce(in, out, op, options));
}
Status Communicator::reduce_scatter(ConstView in, View out, Op op, const CallOptions& options) {
  return run(ops::reduce_scatter(in, out, op, options));
}
Status Communicator::all_gather(ConstView in, View out, const CallOptions& options) {
  return run(ops::all_gather(in, out, options));
}
Status Communicator::broadcast(View data, int root, const CallOptions& options) {
  return run(ops::broadcast(data, data, root, options));
}
Status Communicator::broadcast(ConstView in, View out, int root, const CallOptions& options) {
  return run(ops::broadcast(in, out, root, options));
}
Status Communicator::reduce(ConstView in, View out, Op op, int root) {
  return run(ops::reduce(in, out, op, root));
}
Status Communicator::all_to_all(ConstView in, View out, const CallOptions& options) {
  return run(ops::all_to_all(in, out, options));
}
Status Communicator::gather(ConstView in, View out, int root, const CallOptions& options) {
  return run(ops::gather(in, out, root, options));
}
Status Communicator::scatter(ConstView in, View out, int root, const CallOptions& options) {
  return run(ops::scatter(in, out, root, options));
}
Status Communicator::shift(ConstView in, View out, const CallOptions& options) {
  return run(ops::shift(in, out, options));
}
Status Communicator::barrier(const CallOptions& options) {
  return run(ops::barrier(options));
}
Status Communicator::send(ConstView data, int to, const CallOptions& options) {
  return run(ops::send(data, to, options));
}
Status Communicator::recv(View data, int from, const CallOptions& options) {
  return run(ops::recv(data, from, options));
}

Status Communicator::all_gather_v(ConstView in, View out, std::span<const size_t> counts) {
  return run(ops::uneven(ops::all_gather(in, out), counts));
}
Status Communicator::reduce_scatter_v(ConstView in, View out, std::span<const size_t> counts, Op op) {
  return run(ops::uneven(ops::reduce_scatter(in, out, op), counts));
}
Status Communicator::gather_v(ConstView in, View out, std::span<const size_t> counts, int root) {
  return run(ops::uneven(ops::gather(in, out, root), counts));
}
Status Communicator::scatter_v(ConstView in, View out, std::span<const size_t> counts, int root) {
  return run(ops::uneven(ops::scatter(in, out, root), counts));
}
Status Communicator::all_to_all_v(ConstView in, const Parts& to, View out, const Parts& from) {
  return run(ops::all_to_all_v(in, to, out, from));
}

Result<Work> Communicator::all_reduce_async(ConstView in, View out, Op op, const CallOptions& options) {
  return start(ops::all_reduce(in, out, op, options));
}
Result<Work> Communicator::reduce_scatter_async(ConstView in, View out, Op op, const CallOptions& options) {
  return start(ops::reduce_scatter(in, out, op, options));
}
Result<Work> Communicator::all_gather_async(ConstView in, View out, const CallOptions& options) {
  return start(ops::all_gather(in, out, options));
}
Result<Work> Communicator::broadcast_async(View data, int root, const CallOptions& options) {
  return start(ops::broadcast(data, data, root, options));
}

}  // namespace tern
