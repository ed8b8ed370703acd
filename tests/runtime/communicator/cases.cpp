#include "tests/runtime/communicator/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/runtime/communicator/elements.h"

namespace tern::testing {
namespace {

// A buffer of plain or shared memory, guarded by 64 canary bytes at the end.
class Guarded {
 public:
  Guarded(Communicator& comm, size_t n_bytes, const Case& c) : n_bytes_(n_bytes) {
    const size_t skew = static_cast<size_t>(c.skew) * size_of(c.dtype);
    if (c.shared) {
      auto memory = comm.allocate(n_bytes + kGuard + skew);
      TERN_CHECK(memory.ok());
      allocation_ = std::move(*memory);
      data_ = static_cast<std::byte*>(allocation_.data()) + skew;
    } else {
      // One element off any alignment but the element's own.
      plain_.resize(n_bytes + kGuard + 8 + skew);
      data_ = plain_.data() + 8 + skew;
    }
    std::memset(data_, 0x5A, n_bytes + kGuard);
  }
  std::byte* data() const { return data_; }
  bool intact() const {
    return std::all_of(data_ + n_bytes_, data_ + n_bytes_ + kGuard,
                       [](std::byte b) { return b == std::byte{0x5A}; });
  }

 private:
  static constexpr size_t kGuard = 64;
  size_t n_bytes_;
  Allocation allocation_;
  std::vector<std::byte> plain_;
  std::byte* data_ = nullptr;
};

// How far a reduced element may be off: nothing without a codec; else every rank's share, and the sum again,
// are encoded once.
double tolerance(const Communicator& comm, const Case& c) {
  if (c.codec.id == CodecId::kNone) return 0;
  const CodecInfo& codec = info(c.codec.id);
  const double shares = comm.size() * codec.max_error(c.codec, 7);
  return shares + codec.max_error(c.codec, 7.0 * comm.size() + shares);
}

void run_all_reduce(Communicator& comm, const Case& c) {
  const size_t n_bytes = c.n * size_of(c.dtype);
  Guarded in(comm, n_bytes, c);
  Guarded out(comm, n_bytes, c);
  std::byte* source = c.in_place ? out.data() : in.data();
  for (size_t i = 0; i < c.n; ++i)
    store(source, i, c.dtype, input(comm.rank(), i, c.op, comm.size(), c.dtype));
  const Status status =
      comm.all_reduce({source, c.n, c.dtype}, {out.data(), c.n, c.dtype}, c.op, c.options(comm));
  ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
  ASSERT_TRUE(out.intact()) << c.text(comm);
  for (size_t i = 0; i < c.n; ++i) {
    ASSERT_NEAR(load(out.data(), i, c.dtype), expected(i, c.op, comm.size(), c.dtype), tolerance(comm, c))
        << c.text(comm) << " element " << i;
  }
}

void run_reduce_scatter(Communicator& comm, const Case& c) {
  const size_t whole = c.n * static_cast<size_t>(comm.size());
  const size_t first = c.n * static_cast<size_t>(comm.rank());
  const size_t elt = size_of(c.dtype);
  Guarded in(comm, whole * elt, c);
  Guarded apart(comm, c.n * elt, c);
  for (size_t i = 0; i < whole; ++i)
    store(in.data(), i, c.dtype, input(comm.rank(), i, c.op, comm.size(), c.dtype));
  std::byte* out = c.in_place ? in.data() + first * elt : apart.data();
  const Status status =
      comm.reduce_scatter({in.data(), whole, c.dtype}, {out, c.n, c.dtype}, c.op, c.options(comm));
  ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
  ASSERT_TRUE(in.intact() && apart.intact()) << c.text(comm);
  for (size_t i = 0; i < c.n; ++i) {
    ASSERT_NEAR(load(out, i, c.dtype), expected(first + i, c.op, comm.size(), c.dtype), tolerance(comm, c))
        << c.text(comm) << " element " << i;
  }
}

void run_all_gather(Communicator& comm, const Case& c) {
  const size_t elt = size_of(c.dtype);
  const auto ranks = static_cast<size_t>(comm.size());
  Guarded out(comm, c.n * ranks * elt, c);
  Guarded apart(comm, c.n * elt, c);
  std::byte* in = c.in_place ? out.data() + c.n * static_cast<size_t>(comm.rank()) * elt : apart.data();
  for (size_t i = 0; i < c.n; ++i)
    store(in, i, c.dtype, input(comm.rank(), i, Op::kSum, comm.size(), c.dtype));
  const Status status =
      comm.all_gather({in, c.n, c.dtype}, {out.data(), c.n * ranks, c.dtype}, c.options(comm));
  ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
  ASSERT_TRUE(out.intact()) << c.text(comm);
  for (size_t i = 0; i < c.n * ranks; ++i) {
    ASSERT_EQ(load(out.data(), i, c.dtype),
              input(static_cast<int>(i / c.n), i % c.n, Op::kSum, comm.size(), c.dtype))
        << c.text(comm) << " element " << i;
  }
}

void run_broadcast(Communicator& comm, const Case& c) {
  for (const int root : {0, comm.size() / 2, comm.size() - 1}) {
    Guarded data(comm, c.n * size_of(c.dtype), c);
    for (size_t i = 0; i < c.n; ++i)
      store(data.data(), i, c.dtype, input(comm.rank(), i, Op::kSum, comm.size(), c.dtype));
    const Status status = comm.broadcast({data.data(), c.n, c.dtype}, root, c.options(comm));
    ASSERT_TRUE(status.ok()) << c.text(comm) << " root " << root << ": " << status.error().to_string();
    ASSERT_TRUE(data.intact()) << c.text(comm);
    for (size_t i = 0; i < c.n; ++i) {
      ASSERT_EQ(load(data.data(), i, c.dtype), input(root, i, Op::kSum, comm.size(), c.dtype))
          << c.text(comm) << " root " << root << " element " << i;
    }
  }
}

void run_reduce(Communicator& comm, const Case& c) {
  for (const int root : {0, comm.size() - 1}) {
    const bool is_root = comm.rank() == root;
    Guarded in(comm, c.n * size_of(c.dtype), c);
    Guarded apart(comm, is_root ? c.n * size_of(c.dtype) : 0, c);
    for (size_t i = 0; i < c.n; ++i)
      store(in.data(), i, c.dtype, input(comm.rank(), i, c.op, comm.size(), c.dtype));
    std::byte* out = c.in_place ? in.data() : apart.data();
    const View result = is_root ? View(out, c.n, c.dtype) : View();
    const Status status =
        comm.run(ops::with(ops::reduce({in.data(), c.n, c.dtype}, result, c.op, root), c.options(comm)));
    ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
    ASSERT_TRUE(in.intact() && apart.intact()) << c.text(comm);
    for (size_t i = 0; i < c.n; ++i) {
      const double want = is_root ? expected(i, c.op, comm.size(), c.dtype)
                                  : input(comm.rank(), i, c.op, comm.size(), c.dtype);
      ASSERT_EQ(load(is_root ? out : in.data(), i, c.dtype), want)
          << c.text(comm) << " root " << root << " element " << i;
    }
  }
}

// What rank `from` holds for rank `to` at element i.
double block_element(int from, int to, size_t i) {
  return (from * 7 + to * 3 + static_cast<int>(i)) % 8;
}

void run_all_to_all(Communicator& comm, const Case& c) {
  const auto ranks = static_cast<size_t>(comm.size());
  const size_t n = c.n * ranks;
  Guarded in(comm, n * size_of(c.dtype), c);
  Guarded apart(comm, n * size_of(c.dtype), c);
  for (size_t i = 0; i < n; ++i)
    store(in.data(), i, c.dtype, block_element(comm.rank(), static_cast<int>(i / c.n), i % c.n));
  std::byte* out = c.in_place ? in.data() : apart.data();
  const Status status = comm.all_to_all({in.data(), n, c.dtype}, {out, n, c.dtype}, c.options(comm));
  ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
  ASSERT_TRUE(in.intact() && apart.intact()) << c.text(comm);
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(load(out, i, c.dtype), block_element(static_cast<int>(i / c.n), comm.rank(), i % c.n))
        << c.text(comm) << " element " << i;
  }
}

// gather and scatter: the root has the whole vector.
void run_rooted_shares(Communicator& comm, const Case& c) {
  const size_t elt = size_of(c.dtype);
  const size_t whole_n = c.n * static_cast<size_t>(comm.size());
  for (const int root : {0, comm.size() / 2}) {
    const bool is_root = comm.rank() == root;
    const bool is_gather = c.collective == Collective::kGather;
    Guarded whole(comm, is_root ? whole_n * elt : 0, c);
    Guarded apart(comm, c.n * elt, c);
    const size_t first = c.n * static_cast<size_t>(comm.rank());
    std::byte* part = c.in_place && is_root ? whole.data() + first * elt : apart.data();
    for (size_t i = 0; is_root && !is_gather && i < whole_n; ++i)
      store(whole.data(), i, c.dtype, static_cast<int>(i) % 8);
    for (size_t i = 0; is_gather && i < c.n; ++i) store(part, i, c.dtype, static_cast<int>(first + i) % 8);
    const size_t at_root = is_root ? whole_n : 0;
    const Status status =
        is_gather
            ? comm.gather({part, c.n, c.dtype}, {whole.data(), at_root, c.dtype}, root, c.options(comm))
            : comm.scatter({whole.data(), at_root, c.dtype}, {part, c.n, c.dtype}, root, c.options(comm));
    ASSERT_TRUE(status.ok()) << c.text(comm) << " root " << root << ": " << status.error().to_string();
    ASSERT_TRUE(whole.intact() && apart.intact()) << c.text(comm);
    for (size_t i = 0; is_root && i < whole_n; ++i)
      ASSERT_EQ(load(whole.data(), i, c.dtype), static_cast<int>(i) % 8) << c.text(comm) << " element " << i;
    for (size_t i = 0; i < c.n; ++i)
      ASSERT_EQ(load(part, i, c.dtype), static_cast<int>(first + i) % 8) << c.text(comm) << " element " << i;
  }
}

void run_shift(Communicator& comm, const Case& c) {
  Guarded in(comm, c.n * size_of(c.dtype), c);
  Guarded apart(comm, c.n * size_of(c.dtype), c);
  for (size_t i = 0; i < c.n; ++i) store(in.data(), i, c.dtype, block_element(comm.rank(), 0, i));
  std::byte* out = c.in_place ? in.data() : apart.data();
  const Status status = comm.shift({in.data(), c.n, c.dtype}, {out, c.n, c.dtype}, c.options(comm));
  ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  for (size_t i = 0; i < c.n; ++i)
    ASSERT_EQ(load(out, i, c.dtype), block_element(before, 0, i)) << c.text(comm) << " element " << i;
}

void run_barrier(Communicator& comm, const Case& c) {
  const Status status = comm.barrier(c.options(comm));
  ASSERT_TRUE(status.ok()) << c.text(comm) << ": " << status.error().to_string();
}

}  // namespace

CallOptions Case::options(const Communicator& comm) const {
  CallOptions options{.algorithm = algorithm, .factor = testing::factor(comm.rank())};
  if (codec.id != CodecId::kNone) options.codec = codec;
  return options;
}

std::string Case::text(const Communicator& comm) const {
  return fmt::format("{} {} p={} n={} {} {} codec {} {} {} skew {} rank {}", name(collective), algorithm,
                     comm.size(), n, name(dtype), name(op), to_string(codec),
                     in_place ? "in place" : "out of place", shared ? "shared" : "plain", skew, comm.rank());
}

void run(Communicator& comm, const Case& c) {
  switch (c.collective) {
    case Collective::kAllReduce:
      return run_all_reduce(comm, c);
    case Collective::kReduceScatter:
      return run_reduce_scatter(comm, c);
    case Collective::kAllGather:
      return run_all_gather(comm, c);
    case Collective::kBroadcast:
      return run_broadcast(comm, c);
    case Collective::kBarrier:
      return run_barrier(comm, c);
    case Collective::kReduce:
      return run_reduce(comm, c);
    case Collective::kAllToAll:
      return run_all_to_all(comm, c);
    case Collective::kGather:
    case Collective::kScatter:
      return run_rooted_shares(comm, c);
    case Collective::kSendRecv:
      return run_shift(comm, c);
  }
}

bool can_run(const Algorithm& algorithm, Collective collective, int n_ranks) {
  return algorithm.supports({.collective = collective, .n_ranks = n_ranks});
}

}  // namespace tern::testing
