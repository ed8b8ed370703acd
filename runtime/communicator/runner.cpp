#include "runtime/communicator/runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "runtime/plan/builder.h"

namespace tern {

namespace {

// Peers that run on cores of their own are worth polling for; where ranks outnumber cores each poll keeps the
// awaited rank from running. 100 us of yielding bridges the gaps inside a collective, after that the core is
// worth more to others.
WaitPolicy wait_policy(const Config& config, bool crowded) {
  return {.spin = crowded ? Clock::duration::zero() : std::chrono::microseconds(config.spin_us),
          .yield = std::chrono::microseconds(100)};
}

// What an all_to_all is priced with whose block sizes no rank knows all of: any number will do that all ranks
// take.
constexpr size_t kNominalBlock = 64 << 10;

bool is_message(const Operation& o) {
  return o.kind != Operation::Kind::kCollective;
}

// Whether the plan must know that input and output are the same bytes.
bool moves_in_place(const Operation& o) {
  return (o.collective == Collective::kAllToAll || o.collective == Collective::kSendRecv) &&
         o.in.data == o.out.data;
}

// A number of 12 bits that tells lists of counts apart (FNV-1a; Fowler, Noll & Vo, 1991).
uint32_t hash_of(std::span<const size_t> counts) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const size_t count : counts) hash = (hash ^ count) * 0x100000001b3;
  return static_cast<uint32_t>(hash >> 52);
}

// Of the buffer that every rank has.
Dtype dtype_of(const Operation& o) {
  const bool input_everywhere = o.collective == Collective::kReduce || o.collective == Collective::kGather;
  return input_everywhere ? o.in.dtype : o.out.dtype;
}

void set_pieces(const Parts& parts, std::vector<Range>& pieces) {
  pieces.clear();
  size_t next = 0;
  for (size_t r = 0; r < parts.counts.size(); ++r) {
    const size_t begin = parts.offsets.empty() ? next : parts.offsets[r];
    next = begin + parts.counts[r];
    pieces.push_back({begin, next});
  }
}

// Bytes at an address of their own.
Range bytes_at(const void* data, size_t n_bytes) {
  const auto begin = reinterpret_cast<size_t>(data);
  return {begin, begin + n_bytes};
}

std::pair<Range, bool> place_of(const Operation& message) {
  const bool is_written = message.kind == Operation::Kind::kRecv;
  return {is_written ? bytes_at(message.out.data, message.out.n_bytes())
                     : bytes_at(message.in.data, message.in.n_bytes()),
          is_written};
}

Status check_apart(std::vector<std::pair<Range, bool>>& places) {
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  size_t end = 0;          // of all places so far
  size_t written_end = 0;  // of those that are written
  for (const auto& [place, is_written] : places) {
    if (place.size() == 0) continue;
    if (place.begin < (is_written ? end : written_end))
      return error(Code::kInvalidArgument,
                   "a message of {} bytes is received over another buffer of the same group", place.size());
    end = std::max(end, place.end);
    if (is_written) written_end = std::max(written_end, place.end);
  }
  return {};
}

}  // namespace

Runner::Runner(const Setup& setup, Planner planner)
    : world_(*setup.world),
      members_(*setup.members),
      default_codec_(setup.default_codec),
      planner_(std::move(planner)),
      executor_({.transport = *setup.transport,
                 .heap = *world_.heap,
                 .accuser = *setup.accuser,
                 .policy = wait_policy(world_.config, setup.crowded)},
                members_.ranks) {}

Status Runner::check(std::span<const Operation> operations) const {
  for (const Operation& o : operations) {
    TERN_ASSIGN(const size_t count, tern::check(o, members_.self, members_.size()));
    if (is_message(o)) continue;
    TERN_TRY(check_codec(o, count));
  }
  return check_messages(operations);
}

// Messages of a rank to itself must all be in one group, since nobody else sends or receives them; and what
// is received must not lie over what else the group sends or receives.
Status Runner::check_messages(std::span<const Operation> operations) const {
  std::vector<size_t> sent, received;
  std::vector<std::pair<Range, bool>> places;  // and whether written
  for (const Operation& o : operations) {
    if (!is_message(o)) continue;
    places.push_back(place_of(o));
    if (o.root != members_.self) continue;
    const bool is_send = o.kind == Operation::Kind::kSend;
    (is_send ? sent : received).push_back(is_send ? o.in.n_bytes() : o.out.n_bytes());
  }
  TERN_TRY(check_apart(places));
  if (sent == received) return {};
  return error(Code::kInvalidArgument,
               "rank {} sends itself {} messages and receives {} in this group; they must be as many, of the "
               "same sizes",
               members_.self, sent.size(), received.size());
}

Status Runner::run(std::span<const Operation> operations, CallReport& report) {
  report.clear();
  // One call checks itself before it sends anything.
  if (operations.size() == 1 && !is_message(operations[0])) return run_one(operations[0], report);
  TERN_TRY(check(operations));
  bool has_messages = false;
  for (size_t i = 0; i < operations.size();) {
    if (is_message(operations[i])) {
      has_messages = true;
      ++i;
      continue;
    }
    const auto rest = operations.subspan(i);
    size_t n = fusible(rest);
    while (n > 1) {
      TERN_ASSIGN(const bool pays, fusing_pays(rest, n));
      if (pays) break;
      n /= 2;
    }
    TERN_TRY(n > 1 ? run_fused(rest.first(n), report) : run_one(operations[i], report));
    i += std::max<size_t>(1, n);
  }
  return has_messages ? exchange(operations, report) : Status();
}

// How many operations from the first on could be one.
size_t Runner::fusible(std::span<const Operation> operations) const {
  const Operation& first = operations.front();
  const auto can = [&](const Operation& o) {
    return o.kind == Operation::Kind::kCollective && o.collective == Collective::kAllReduce &&
           o.op == first.op && o.out.dtype == first.out.dtype && o.op != Op::kPremulSum &&
           o.options.algorithm.empty() && !o.options.codec.has_value() && o.options.residual == nullptr &&
           default_codec_.is_dense();
  };
  return static_cast<size_t>(std::find_if_not(operations.begin(), operations.end(), can) -
                             operations.begin());
}

Result<bool> Runner::fusing_pays(std::span<const Operation> operations, size_t count) {
  double apart = 0;
  size_t n = 0;
  for (const Operation& o : operations.first(count)) {
    TERN_ASSIGN(const Decision* decision, planner_.decide(shape_of(o, o.in.n, {})));
    apart += decision->predicted_seconds;
    n += o.in.n;
  }
  TERN_ASSIGN(const Decision* together, planner_.decide(shape_of(operations.front(), n, {})));
  const size_t n_bytes = n * size_of(operations.front().out.dtype);
  return together->predicted_seconds + planner_.copy_seconds(2 * n_bytes) < apart;
}

Status Runner::run_fused(std::span<const Operation> operations, CallReport& report) {
  const size_t elt = size_of(operations.front().out.dtype);
  size_t n = 0;
  for (const Operation& o : operations) n += o.in.n;
  TERN_ASSIGN(std::byte* const packed, workspace(n * elt));
  size_t at = 0;
  for (const Operation& o : operations) {
    if (o.in.n > 0) copy(packed + at, o.in.data, o.in.n_bytes());
    at += o.in.n_bytes();
  }
  Operation whole = operations.front();
  whole.out = {packed, n, whole.out.dtype};
  whole.in = whole.out;
  TERN_TRY(run_one(whole, report));
  at = 0;
  for (const Operation& o : operations) {
    if (o.out.n > 0) copy(o.out.data, packed + at, o.out.n_bytes());
    at += o.out.n_bytes();
  }
  return {};
}

Result<std::byte*> Runner::workspace(size_t n_bytes) {
  if (workspace_.n_bytes() < n_bytes) {
    workspace_ = {};
    TERN_ASSIGN(workspace_, allocate(world_, n_bytes));
  }
  return static_cast<std::byte*>(workspace_.data());
}

// A pre-multiplied sum is a sum of inputs that were multiplied before: in the output where that holds them
// all, else in memory of the runner, as large as the input.
Status Runner::run_one(const Operation& o, CallReport& report) {
  if (o.op != Op::kPremulSum || !reduces(o.collective)) return run_call(o, o.in, report);
  TERN_TRY(tern::check(o, members_.self, members_.size()).status());
  std::byte* scaled = static_cast<std::byte*>(o.out.data);
  if (o.collective != Collective::kAllReduce) {
    TERN_ASSIGN(scaled, workspace(o.in.n_bytes()));
  }
  scale({o.in.dtype, o.in.data, scaled, o.options.factor, o.in.n});
  return run_call(o, {scaled, o.in.n, o.in.dtype}, report);
}

Shape Runner::shape_of(const Operation& o, size_t count, CodecSpec codec) const {
  const size_t elt = size_of(dtype_of(o));
  const bool sizes_unknown = o.collective == Collective::kAllToAll && o.is_uneven();
  return {.collective = o.collective,
          .n_bytes = sizes_unknown ? kNominalBlock * members_.ranks.size() : count * elt,
          .elt = elt,
          .root = o.root,
          .codec = codec,
          .uneven = o.is_uneven(),
          .in_place = moves_in_place(o),
          .algorithm = o.options.algorithm};
}

Chunks Runner::chunks_of(const Operation& o, size_t count) {
  Chunks chunks{.n = count};
  if (!o.is_uneven()) return chunks;
  if (o.collective == Collective::kAllToAll) {
    set_pieces(o.in_parts, in_pieces_);
    set_pieces(o.out_parts, out_pieces_);
    chunks.in_pieces = in_pieces_;
    chunks.out_pieces = out_pieces_;
    return chunks;
  }
  offsets_.assign(1, 0);
  for (const size_t n : o.in_parts.counts) offsets_.push_back(offsets_.back() + n);
  chunks.offsets = offsets_;
  return chunks;
}

Status Runner::run_call(const Operation& o, const ConstView& in, CallReport& report) {
  TERN_ASSIGN(const size_t count, tern::check(o, members_.self, members_.size()));
  TERN_TRY(check_codec(o, count));
  TERN_ASSIGN(const CodecVerdict verdict, verdict_for(o, count));
  TERN_ASSIGN(const Decision* decision, planner_.decide(shape_of(o, count, verdict.codec)));
  tally(verdict, o);
  const size_t elt = size_of(dtype_of(o));
  const bool counts_agree = o.is_uneven() && o.collective != Collective::kAllToAll;
  Call call{.program = decision->program,
            .signature = {.sequence = sequence_++,
                          .collective = o.collective,
                          .dtype = dtype_of(o),
                          .op = o.op,
                          .codec = verdict.codec,
                          .root = o.root,
                          .plan = decision->fingerprint ^ (counts_agree ? hash_of(o.in_parts.counts) : 0),
                          .count = count},
            .chunks = chunks_of(o, count),
            .in = in.data,
            .out = o.out.data,
            .segment = decision->segment_bytes / elt,
            .residual = o.options.residual,
            .measures_error = o.options.measures_error,
            .tag = {.step = o.options.step, .bucket = o.options.bucket, .element_offset = 0}};
  report.algorithm = decision->algorithm;
  report.codec = verdict.codec;
  report.codec_reason = verdict.reason;
  report.predicted_dense_seconds += verdict.dense_seconds;
  report.segment_bytes = decision->segment_bytes;
  report.predicted_seconds += decision->predicted_seconds;
  return execute(call, o, report);
}

Status Runner::execute(Call& call, const Operation& o, CallReport& report) {
  call.timeout = o.options.timeout.count() > 0 ? o.options.timeout : world_.config.timeout;
  const auto begun = Clock::now();
  call.deadline = Deadline(begun + std::chrono::duration_cast<Clock::duration>(call.timeout));
  CallCounters counters;
  TERN_TRY(executor_.run(call, counters));
  report.measured_seconds += seconds_since(begun);
  report.bytes_on_wire += counters.bytes_on_wire;
  report.non_finite |= counters.non_finite;
  report.n_saturated += counters.n_saturated;
  report.error += counters.error;
  return {};
}

// All messages of a group in one round. A message is bytes: its chunk is its own address.
Status Runner::exchange(std::span<const Operation> operations, CallReport& report) {
  in_pieces_.clear();
  out_pieces_.clear();
  messages_.clear();
  const Operation* first = nullptr;
  for (const Operation& o : operations) {
    if (!is_message(o)) continue;
    if (first == nullptr) first = &o;
    const bool is_send = o.kind == Operation::Kind::kSend;
    messages_.push_back({o.root, is_send});
    if (is_send)
      in_pieces_.push_back(bytes_at(o.in.data, o.in.n_bytes()));
    else
      out_pieces_.push_back(bytes_at(o.out.data, o.out.n_bytes()));
  }
  TERN_ASSIGN(const Program* program, exchange_program());
  Call call{.program = program,
            .signature = message_signature(),
            .chunks = {.in_pieces = in_pieces_, .out_pieces = out_pieces_}};
  report.algorithm = "messages";
  return execute(call, *first, report);
}

Result<const Program*> Runner::exchange_program() {
  if (exchange_ != nullptr && messages_ == planned_messages_) return exchange_.get();
  const auto n = static_cast<int>(std::max(in_pieces_.size(), out_pieces_.size()));
  if (n > INT16_MAX)
    return error(Code::kInvalidArgument, "a group holds {} messages one way; allowed: {}", n, INT16_MAX);
  PlanBuilder b({.collective = Collective::kSendRecv, .rank = members_.self, .n_ranks = members_.size()},
                "messages", n);
  std::vector<int> to_self, from_self;
  int n_sends = 0;
  int n_recvs = 0;
  for (const Message& m : messages_) {
    const bool is_own = m.peer == members_.self;
    if (is_own) (m.is_send ? to_self : from_self).push_back(m.is_send ? n_sends : n_recvs);
    if (!is_own && m.is_send) b.send(0, m.peer, input(n_sends));
    if (!is_own && !m.is_send) b.recv(0, m.peer, output(n_recvs));
    (m.is_send ? n_sends : n_recvs)++;
  }
  for (size_t i = 0; i < to_self.size(); ++i) b.copy(0, input(to_self[i]), output(from_self[i]));
  exchange_ = std::make_unique<Program>(compile(std::move(b).finish(1)));
  planned_messages_ = messages_;
  return exchange_.get();
}

}  // namespace tern
