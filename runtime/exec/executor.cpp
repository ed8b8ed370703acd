#include "runtime/exec/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "runtime/codec/decode.h"
#include "runtime/exec/await.h"
#include "runtime/exec/memory.h"

namespace tern {

// One call under way: the program's position, and where its chunks lie.
class Executor::Run {
 public:
  Run(Executor& executor, const Call& call, CallCounters& counters)
      : transport_(executor.transport_),
        memory_(*executor.memory_),
        members_(executor.members_),
        call_(call),
        program_(*call.program),
        waiting_{.transport = transport_,
                 .spin = memory_.spin,
                 .policy = executor.policy_,
                 .call = call,
                 .accuser = executor.accuser_,
                 .rank = world_rank(program_.plan.rank)},
        counters_(counters),
        signature_(call.signature),
        envelope_(pack(call.signature)),
        elt_(size_of(call.signature.dtype)),
        codec_(info(call.signature.codec.id)),
        layout_(program_.plan, call.chunks,
                {.segment = program_.cuts ? call.segment : 0,
                 .grain = program_.plan.encoded ? codec_.block : 64 / elt_}),
        in_base_(first_element(Buffer::kInput)),
        out_base_(first_element(Buffer::kOutput)) {}

  Status run() {
    TERN_TRY(reserve());
    const size_t n_rounds = program_.rounds.size();
    // One slot more than the pipeline: the last slot's sends are awaited (and averages taken) there.
    const size_t n_slots = layout_.n_segments() + n_rounds;
    for (size_t slot = 0; slot < n_slots; ++slot) {
      if (!run_slot(slot)) return failed();
    }
    return {};
  }

 private:
  // Segments [first, last) are in the pipeline in this slot; segment s is in round slot - s.
  struct Window {
    size_t first;
    size_t last;
  };
  Window window(size_t slot) const {
    const size_t n_rounds = program_.rounds.size();
    return {slot + 1 > n_rounds ? slot + 1 - n_rounds : 0, std::min(layout_.n_segments(), slot + 1)};
  }

  bool run_slot(size_t slot) {
    const Window w = window(slot);
    slot_ = slot;
    // A transport that writes arriving bytes to their place at once must not do so while a peer still reads
    // there.
    const bool strict = transport_.writes_on_arrival();
    if (strict && !finish_sends(slot)) return false;
    memory_.start_slot();
    for (size_t s = w.first; s < w.last; ++s) post_recvs(program_.rounds[slot - s], s);
    for (size_t s = w.first; s < w.last; ++s) post_sends(program_.rounds[slot - s], s, slot);
    if (!strict && !finish_sends(slot)) return false;
    if (slot >= program_.rounds.size()) average(slot - program_.rounds.size());
    int recv_base = 0;
    for (size_t s = w.first; s < w.last; ++s) {
      const Round& round = program_.rounds[slot - s];
      if (!finish_round(round, s, recv_base)) return false;
      recv_base += static_cast<int>(round.recvs.size());
    }
    return true;
  }

  // Grows scratch, wire and landing buffers to this call's shape.
  Status reserve() {
    const size_t n_rounds = program_.rounds.size();
    depth_ = std::max<size_t>(1, std::min(layout_.n_segments(), n_rounds));
    max_chunk_ = layout_.max_chunk();
    wire_stride_ = program_.plan.encoded ? round_up(wire_bytes(max_chunk_)) : 0;
    const Memory::Shape shape{
        .n_recvs = layout_.n_segments() == 1 ? most_recvs() : static_cast<size_t>(program_.max_recvs),
        .n_sends = static_cast<size_t>(program_.max_sends),
        .landing = landing_bytes(),
        .scratch = depth_ * static_cast<size_t>(program_.plan.n_scratch) * round_up(max_chunk_ * elt_),
        .wire = depth_ * static_cast<size_t>(program_.plan.n_wire) * wire_stride_};
    return memory_.reserve(shape);
  }

  static size_t round_up(size_t n_bytes) { return (n_bytes + 63) / 64 * 64; }

  size_t most_recvs() const {
    size_t most = 0;
    for (const Round& round : program_.rounds) most = std::max(most, round.recvs.size());
    return most;
  }

  // Landing space is for payloads that only pass by; those of all rounds may be there at once when segments
  // are piped.
  size_t landing_bytes() const {
    size_t most = 0;
    size_t total = 0;
    for (const Round& round : program_.rounds) {
      size_t n_bytes = 0;
      for (const PostedRecv& recv : round.recvs) {
        if (recv.lands) continue;
        const size_t n_elements = layout_.n_segments() == 1
                                      ? layout_.range(recv.dst, 0).size()
                                      : max_chunk_ * static_cast<size_t>(recv.dst.n_chunks);
        n_bytes += round_up(n_elements * elt_);
      }
      most = std::max(most, n_bytes);
      total += n_bytes;
    }
    return layout_.n_segments() == 1 ? most : total;
  }

  Range range(const Ref& ref, size_t segment) const { return layout_.range(ref, segment); }

  std::byte* address(const Ref& ref, const Range& r, size_t segment) const {
    switch (ref.buffer) {
      case Buffer::kInput:
        // The plan never writes its input (verified), so the pointer may be shared with what is written.
        return const_cast<std::byte*>(static_cast<const std::byte*>(call_.in)) +
               (r.begin - in_base_) * elt_;  // NOLINT
      case Buffer::kOutput:
        return static_cast<std::byte*>(call_.out) + (r.begin - out_base_) * elt_;
      case Buffer::kScratch:
        return scratch(ref, r, segment);
      case Buffer::kWire:
        break;
    }
    return wire(ref.slot, segment);
  }

  // Places are chunks apart. Where runs of chunks move, those of a region lie as close as in the vector
  // itself; the blocks of an all_to_all are all of one size then, whatever their labels.
  std::byte* scratch(const Ref& ref, const Range& r, size_t segment) const {
    const Plan& plan = program_.plan;
    const size_t stride = round_up(max_chunk_ * elt_);
    std::byte* base = memory_.scratch() + (segment % depth_) * static_cast<size_t>(plan.n_scratch) * stride;
    const auto slot = static_cast<size_t>(ref.slot);
    if (!program_.moves_runs) return base + slot * stride;
    if (plan.collective == Collective::kAllToAll) return base + slot * max_chunk_ * elt_;
    const auto region = static_cast<size_t>(program_.regions[slot]);
    const Ref first{ref.buffer, static_cast<int16_t>(ref.chunk - (slot - region))};
    return base + region * stride + (r.begin - range(first, segment).begin) * elt_;
  }

  // Of the whole vector, the first element that this rank has of a buffer.
  size_t first_element(Buffer buffer) const {
    if (call_.chunks.is_pieces()) return 0;
    const HeldChunks held = held_chunks(program_.plan, buffer);
    return held.first == 0 ? 0 : layout_.begin_of(held.first);
  }

  std::byte* wire(int slot, size_t segment) const {
    const size_t place =
        (segment % depth_) * static_cast<size_t>(program_.plan.n_wire) + static_cast<size_t>(slot);
    return memory_.wire() + place * wire_stride_;
  }

  size_t wire_bytes(size_t n) const { return codec_.wire_bytes(signature_.codec, signature_.dtype, n); }

  void post_recvs(const Round& round, size_t segment) {
    for (const PostedRecv& posted : round.recvs) {
      const Range r = range(posted.dst, segment);
      RecvRequest& request = memory_.next_recv();
      request.peer = world_rank(posted.peer);
      request.n_bytes = posted.encoded ? wire_bytes(r.size()) : r.size() * elt_;
      request.into = posted.lands ? address(posted.dst, r, segment) : memory_.land(round_up(request.n_bytes));
      request.data = nullptr;
      transport_.recv(request);
    }
  }

  void post_sends(const Round& round, size_t segment, size_t slot) {
    for (const Action& action : round.sends) {
      const Range r = range(action.src, segment);
      SendRequest& request = memory_.next_send(slot);
      request.peer = world_rank(action.peer);
      request.data = address(action.src, r, segment);
      request.n_bytes = action.wire >= 0 ? wire_bytes(r.size()) : r.size() * elt_;
      request.envelope = envelope(r.size());
      request.lands = !reduces(signature_.collective);
      counters_.bytes_on_wire += request.n_bytes;
      transport_.send(request);
      if (transport_.poll(request) == Poll::kDone) memory_.drop_send(slot);
    }
  }

  // The sends of the slot before.
  bool finish_sends(size_t slot) {
    if (slot == 0) return true;
    for (SendRequest& request : memory_.sends(slot - 1)) {
      if (!await(request)) return false;
    }
    memory_.clear_sends(slot - 1);
    return true;
  }

  bool finish_round(const Round& round, size_t segment, int recv_base) {
    for (const Action& action : round.work) {
      if (!work(action, segment, recv_base)) return false;
    }
    return true;
  }

  bool work(const Action& action, size_t segment, int recv_base) {
    switch (action.kind) {
      case ActionKind::kCombine:
        return combine(action, segment, recv_base);
      case ActionKind::kDecode:
        return decode(action, segment, recv_base);
      case ActionKind::kKeepWire:
        return keep_wire(action, segment, memory_.recv(recv_base + action.recv_idx));
      case ActionKind::kEncode:
        encode(action, segment);
        return true;
      case ActionKind::kSend:
        break;
    }
    return true;
  }

  std::span<const Operand> operands_of(const Action& action) const {
    return {&program_.operands[static_cast<size_t>(action.first_operand)],
            static_cast<size_t>(action.n_operands)};
  }

  void release(std::span<const Operand> operands, int recv_base) {
    for (const Operand& operand : operands) {
      if (operand.recv_idx >= 0) transport_.release(memory_.recv(recv_base + operand.recv_idx));
    }
  }

  bool combine(const Action& action, size_t segment, int recv_base) {
    const Range r = range(action.dst, segment);
    std::byte* dst = address(action.dst, r, segment);
    const std::span<const Operand> operands = operands_of(action);
    memory_.sources.clear();
    for (const Operand& operand : operands) {
      if (operand.recv_idx < 0) {
        memory_.sources.push_back(local_operand(operand.local, r, segment));
        continue;
      }
      RecvRequest& request = memory_.recv(recv_base + operand.recv_idx);
      if (!arrived(request)) return false;
      memory_.sources.push_back(request.data);
    }
    if (operands.size() == 1) {
      copy(dst, memory_.sources[0], r.size() * elt_, {.stream = streams(action.dst, r)});
    } else {
      const ReduceOptions options{.stream = streams(action.dst, r)};
      reduce(signature_.dtype, signature_.op, dst, {memory_.sources, r.size(), options});
    }
    release(operands, recv_base);
    return true;
  }

  // A result that is much larger than the cache is written past it, and so is each part of it.
  bool streams(const Ref& dst, const Range& r) const {
    return dst.buffer == Buffer::kOutput && std::max(call_.chunks.n, r.size()) * elt_ >= kStreamBytes;
  }

  // Of the same elements as `dst`, except where chunks are blocks that change places.
  const std::byte* local_operand(const Ref& ref, const Range& dst, size_t segment) const {
    const bool is_moved = signature_.collective == Collective::kAllToAll || call_.chunks.is_pieces();
    return address(ref, is_moved ? range(ref, segment) : dst, segment);
  }

  bool keep_wire(const Action& action, size_t segment, RecvRequest& request) {
    if (!arrived(request) || !is_expected(request, range(action.dst, segment))) return false;
    std::byte* place = wire(action.wire, segment);
    if (request.data != place) copy(place, request.data, request.n_bytes);
    transport_.release(request);
    return true;
  }

  void encode(const Action& action, size_t segment) {
    const Range r = range(action.src, segment);
    std::byte* src = address(action.src, r, segment);
    // Averages of a finished sum are taken before it travels.
    if (action.is_finished && signature_.op == Op::kAvg) {
      tern::average(signature_.dtype, src, program_.plan.n_ranks, r.size());
    }
    const EncodeArgs args{.in = {src, r.size(), signature_.dtype},
                          .residual = residual_at(r.begin),
                          .wire = wire(action.wire, segment),
                          .spec = signature_.codec,
                          .tag = tag_of(sent_as(r, segment))};
    const EncodeStats stats = codec_.encode(args);
    counters_.non_finite |= stats.non_finite;
    counters_.n_saturated += stats.n_saturated;
    if (call_.measures_error) counters_.error += encoding_error(args);
  }

  float* residual_at(size_t element) const {
    const bool used = call_.residual != nullptr && codec_.residual != ResidualUse::kNone;
    return used ? call_.residual + element : nullptr;
  }

  // What the receivers call the elements: in an all_to_all, the block of this rank.
  Range sent_as(const Range& r, size_t segment) const {
    if (signature_.collective != Collective::kAllToAll) return r;
    return range({.buffer = Buffer::kOutput, .chunk = static_cast<int16_t>(program_.plan.rank)}, segment);
  }

  WireTag tag_of(const Range& r) const {
    return {.step = call_.tag.step, .bucket = call_.tag.bucket, .element_offset = r.begin};
  }

  bool is_expected(const RecvRequest& request, const Range& r) {
    const Status header =
        check_header({static_cast<const std::byte*>(request.data), request.n_bytes, request.peer},
                     {signature_.codec, tag_of(r), signature_.dtype, r.size()});
    return header.ok() || fail(header.error());
  }

  bool decode(const Action& action, size_t segment, int recv_base) {
    const Range r = range(action.dst, segment);
    const std::span<const Operand> operands = operands_of(action);
    memory_.shares.clear();
    for (const Operand& operand : operands) {
      Share share;
      if (operand.recv_idx >= 0) {
        RecvRequest& request = memory_.recv(recv_base + operand.recv_idx);
        if (!arrived(request)) return false;
        if (operand.wire < 0) {
          share.elements = request.data;
        } else if (!is_expected(request, r)) {
          return false;
        } else {
          share.wire = static_cast<const std::byte*>(request.data);
        }
      } else if (operand.wire >= 0) {
        share.wire = wire(operand.wire, segment);
      } else {
        share.elements = address(operand.local, r, segment);
      }
      memory_.shares.push_back(share);
    }
    const View out(address(action.dst, r, segment), r.size(), signature_.dtype);
    if (operands.size() == 1) {  // which is encoded
      tern::decode(signature_.codec, memory_.shares[0].wire, out);
    } else {
      decode_sum(signature_.codec, memory_.shares, out);
    }
    release(operands, recv_base);
    return true;
  }

  // Averages that were not taken before an owner encoded its sum are taken when the segment is complete and
  // nobody reads it.
  void average(size_t segment) {
    if (signature_.op != Op::kAvg || program_.plan.encodes_sums || program_.plan.n_ranks == 1) return;
    const HeldChunks held = held_chunks(program_.plan, Buffer::kOutput);
    if (held.n == 0) return;
    Ref own{.buffer = Buffer::kOutput,
            .chunk = static_cast<int16_t>(held.first),
            .n_chunks = static_cast<int16_t>(held.n)};
    if (!owners_fixed(signature_.collective)) return average_chunk(own, segment);
    own.n_chunks = 1;
    for (int i = 0; i < held.n; ++i, ++own.chunk) average_chunk(own, segment);
  }

  void average_chunk(const Ref& own, size_t segment) {
    const Range r = range(own, segment);
    tern::average(signature_.dtype, address(own, r, segment), program_.plan.n_ranks, r.size());
  }

  // What a message of n elements carries: where the ends of a message alone know its size, that is the count
  // they must agree on.
  Envelope envelope(size_t n) const {
    return {envelope_.call, call_.chunks.is_pieces() ? n : envelope_.count};
  }

  int world_rank(int rank) const { return members_[static_cast<size_t>(rank)]; }
  int self() const { return world_rank(program_.plan.rank); }

  // Waits for a message and looks whether it is of this call.
  bool arrived(RecvRequest& request) {
    const size_t expected = request.n_bytes;
    if (!await(request)) return false;
    const Envelope due = envelope(expected / elt_);
    if (request.envelope == due && (request.data != nullptr || expected == 0)) [[likely]]
      return true;
    Signature mine = signature_;
    mine.count = due.count;
    return fail(mismatch_error(mine, self(), unpack(request.envelope), request.peer));
  }

  template <class Request>
  bool await(Request& request) {
    if (transport_.poll(request) == Poll::kDone) [[likely]]
      return true;
    const auto error = tern::await(waiting_, request, [this] { return progress_sends(); });
    return !error || fail(*error);
  }

  bool progress_sends() {
    return memory_.each_pending_send(
        slot_, [&](SendRequest& request) { return transport_.poll(request) != Poll::kFailed; });
  }

  bool fail(const Error& error) {
    error_ = error;
    return false;
  }

  Status failed() {
    transport_.abort(*error_);
    return *error_;
  }

  Transport& transport_;
  Memory& memory_;
  const std::vector<int>& members_;
  const Call& call_;
  const Program& program_;
  const Waiting waiting_;
  CallCounters& counters_;
  const Signature signature_;
  const Envelope envelope_;
  const size_t elt_;
  const CodecInfo& codec_;
  const Layout layout_;
  const size_t in_base_;
  const size_t out_base_;
  size_t slot_ = 0;
  size_t depth_ = 1;
  size_t max_chunk_ = 0;
  size_t wire_stride_ = 0;
  std::optional<Error> error_;
};

Executor::Executor(const Setup& setup, std::vector<int> members)
    : transport_(setup.transport),
      accuser_(setup.accuser),
      members_(std::move(members)),
      policy_(setup.policy),
      memory_(std::make_unique<Memory>(setup.heap, setup.policy.spin)) {}

Executor::~Executor() = default;

Status Executor::run(const Call& call, CallCounters& counters) {
  return Run(*this, call, counters).run();
}

}  // namespace tern
