// Encoded messages: rewrites a dense plan step by step.
//
// Old round r becomes rounds 2r (what must be encoded for its sends) and 2r+1 (the exchange), so that with
// segments one is encoded while the one before it is on the wire. Chunks of kInput are encoded once, in
// round 0. What was encoded to be sent, or arrived encoded, is remembered as the image of its memory until
// that is written again: it is forwarded as it is, and local readers of encoded memory read the image,
// because that is what the other ranks have.
//
// Source of "one quantisation per level": ZeRO++ (Wang 2023), SDP4Bit (2024).
#include <algorithm>
#include <array>

#include "runtime/plan/builder.h"
#include "runtime/plan/compose.h"

namespace tern {
namespace {

/// The places that a ref covers: slots of scratch, chunks of the other buffers.
struct Places {
  size_t begin = 0;
  size_t end = 0;
};
Places places_of(const Ref& ref) {
  const auto first = static_cast<size_t>(ref.buffer == Buffer::kScratch ? ref.slot : ref.chunk);
  return {first, first + static_cast<size_t>(ref.n_chunks)};
}

bool overlap(const Ref& a, const Ref& b) {
  const Places x = places_of(a);
  const Places y = places_of(b);
  return a.buffer == b.buffer && x.begin < y.end && y.begin < x.end;
}

/// Which memory is the image of which encoded block. All calls cost O(places of the ref).
class Images {
 public:
  struct Image {
    Ref memory;
    int block;
  };

  void add(const Ref& memory, int block) {
    std::vector<int>& at = at_[static_cast<size_t>(memory.buffer)];
    const Places places = places_of(memory);
    if (at.size() < places.end) at.resize(places.end, -1);
    std::fill(at.begin() + static_cast<ptrdiff_t>(places.begin),
              at.begin() + static_cast<ptrdiff_t>(places.end), static_cast<int>(images_.size()));
    images_.push_back({memory, block});
  }
  /// The image that covers any of the memory, or null.
  const Image* find(const Ref& memory) const {
    const std::vector<int>& at = at_[static_cast<size_t>(memory.buffer)];
    const Places places = places_of(memory);
    for (size_t i = places.begin; i < std::min(places.end, at.size()); ++i)
      if (at[i] >= 0) return &images_[static_cast<size_t>(at[i])];
    return nullptr;
  }
  bool has(const Ref& memory) const {
    const Image* image = find(memory);
    return image != nullptr && image->memory == memory;
  }
  /// Memory that is written is nobody's image any more, nor is what it was a part of.
  void forget(const Ref& memory) {
    std::vector<int>& at = at_[static_cast<size_t>(memory.buffer)];
    while (const Image* image = find(memory)) {
      const Places places = places_of(image->memory);
      std::fill(at.begin() + static_cast<ptrdiff_t>(places.begin),
                at.begin() + static_cast<ptrdiff_t>(places.end), -1);
    }
  }

 private:
  std::vector<Image> images_;
  std::array<std::vector<int>, 4> at_;  // by buffer and place: the image that covers it; -1: none
};

/// By buffer and place: the operations (steps, or reductions from their first step on) that read it on this
/// rank, or write it, in order.
class Uses {
 public:
  explicit Uses(std::span<const Step> steps) : steps_(steps) {
    for (size_t first = 0, end = 0; first < steps.size(); first = end) {
      end = reduction_end(steps, first);
      if (steps[first].kind == StepKind::kSend) continue;
      note(steps[first].dst, first);
      for (size_t i = first; i < end; ++i)
        if (steps[i].peer < 0 && has_src(steps[i].kind)) note(steps[i].src, first);
    }
  }
  /// The first operation after `step` that uses any of the memory; empty: none does.
  std::span<const Step> next(const Ref& memory, const Step& step) const {
    const auto after = static_cast<size_t>(&step - steps_.data());
    const std::vector<std::vector<size_t>>& at = at_[static_cast<size_t>(memory.buffer)];
    const Places places = places_of(memory);
    size_t first = steps_.size();
    for (size_t place = places.begin; place < std::min(places.end, at.size()); ++place) {
      const auto found = std::upper_bound(at[place].begin(), at[place].end(), after);
      if (found != at[place].end()) first = std::min(first, *found);
    }
    if (first == steps_.size()) return {};
    return steps_.subspan(first, reduction_end(steps_, first) - first);
  }

 private:
  void note(const Ref& memory, size_t first) {
    std::vector<std::vector<size_t>>& at = at_[static_cast<size_t>(memory.buffer)];
    const Places places = places_of(memory);
    if (at.size() < places.end) at.resize(places.end);
    for (size_t place = places.begin; place < places.end; ++place)
      if (at[place].empty() || at[place].back() != first) at[place].push_back(first);
  }

  std::span<const Step> steps_;
  std::array<std::vector<std::vector<size_t>>, 4> at_;
};

// Encoded chunks that lie side by side, from the first round that writes them to the last that reads them.
struct Block {
  int n_chunks = 0;
  int first_round = 0;
  int last_round = 0;
};

// Gives blocks their places: the lowest that nobody uses in the same rounds. Returns the number of places.
int place_blocks(std::span<const Block> blocks, std::vector<int>& places) {
  std::vector<size_t> order(blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].first_round < blocks[b].first_round; });
  std::vector<int> busy_until;  // by place; free from the round after
  places.assign(blocks.size(), 0);
  Block previous;
  size_t from = 0;  // no run of places that suits blocks like `previous` starts before this
  for (const size_t i : order) {
    const Block& block = blocks[i];
    if (block.n_chunks != previous.n_chunks || block.first_round != previous.first_round) from = 0;
    previous = block;
    const auto n = static_cast<size_t>(block.n_chunks);
    size_t n_free = 0;
    for (size_t at = from; n_free < n; ++at) {
      if (at == busy_until.size()) busy_until.push_back(-1);
      n_free = busy_until[at] < block.first_round ? n_free + 1 : 0;
      from = at + 1;
    }
    places[i] = static_cast<int>(from - n);
    for (size_t k = from - n; k < from; ++k) busy_until[k] = block.last_round;
  }
  return static_cast<int>(busy_until.size());
}

class Rewriter {
 public:
  explicit Rewriter(const Plan& plan) : plan_(plan), uses_(plan.steps), result_(plan) {
    result_.steps.clear();
  }
  Result<Plan> run();

 private:
  Status encode_input();
  Status rewrite(std::span<const Step> group);
  Status rewrite_send(const Step& step);
  Status rewrite_recv(const Step& step);
  Status rewrite_reduction(std::span<const Step> group);
  Status add_operand(const Step& step, const Ref& dst, bool is_first);
  bool is_kept(const Step& send) const;
  bool is_added_to(const Step& recv) const;
  bool must_read_dst_late(std::span<const Step> group) const;

  int new_block(int n_chunks, int round);
  Ref wire(int block, const Ref& chunks, int round);
  void add_local(StepKind kind, int round, Ref src, Ref dst);
  void add_message(const Step& original, int round, Ref ref);
  Result<int> image_of(const Ref& memory, const Step& step) const;  // -1: none
  Error unsupported(const Step& step, std::string_view why) const;

  const Plan& plan_;
  const Uses uses_;
  Plan result_;
  std::vector<Block> blocks_;
  Images images_;
  std::vector<Ref> sums_;       // memory that holds sums of received shares
  std::vector<Ref> sent_sums_;  // those of them that were sent: they must have been complete
};

Result<Plan> Rewriter::run() {
  if (plan_.collective == Collective::kBarrier)
    return error(Code::kUnsupported, "a barrier moves no data that could be encoded");
  if (plan_.encoded) return error(Code::kUnsupported, "the plan by {} is encoded already", plan_.algorithm);
  TERN_TRY(encode_input());
  for (size_t first = 0; first < plan_.steps.size();) {
    const size_t end = reduction_end(plan_.steps, first);
    TERN_TRY(rewrite(std::span(plan_.steps).subspan(first, end - first)));
    first = end;
  }
  std::vector<int> places;
  result_.n_wire = place_blocks(blocks_, places);
  for (Step& step : result_.steps)
    for (Ref* ref : {&step.src, &step.dst})
      if (ref->buffer == Buffer::kWire)
        ref->slot = static_cast<int16_t>(places[static_cast<size_t>(ref->slot)]);
  std::stable_sort(result_.steps.begin(), result_.steps.end(),
                   [](const Step& a, const Step& b) { return a.round < b.round; });
  result_.n_rounds = 2 * plan_.n_rounds;
  result_.encoded = result_.n_wire > 0;
  return std::move(result_);
}

Status Rewriter::encode_input() {
  for (const Step& step : plan_.steps) {
    if (step.kind != StepKind::kSend || step.src.buffer != Buffer::kInput || step.src.n_chunks == 0) continue;
    TERN_ASSIGN(const int known, image_of(step.src, step));
    if (known >= 0) continue;
    const int block = new_block(step.src.n_chunks, 0);
    add_local(StepKind::kEncode, 0, step.src, wire(block, step.src, 0));
    images_.add(step.src, block);
  }
  return {};
}

Status Rewriter::rewrite(std::span<const Step> group) {
  const Step& head = group.front();
  switch (head.kind) {
    case StepKind::kSend:
      return rewrite_send(head);
    case StepKind::kEncode:
    case StepKind::kDecode:
    case StepKind::kDecodeAccumulate:
      return unsupported(head, "it is encoded already");
    case StepKind::kRecv:
      if (group.size() == 1) return rewrite_recv(head);
      return rewrite_reduction(group);
    default:
      return rewrite_reduction(group);
  }
}

Status Rewriter::rewrite_send(const Step& step) {
  const int round = 2 * step.round + 1;
  if (step.src.n_chunks == 0) {
    add_message(step, round, step.src);
    return {};
  }
  TERN_ASSIGN(int block, image_of(step.src, step));
  if (block < 0) {
    block = new_block(step.src.n_chunks, round - 1);
    const Ref encoded = wire(block, step.src, round - 1);
    add_local(StepKind::kEncode, round - 1, step.src, encoded);
    if (is_kept(step)) add_local(StepKind::kDecode, round - 1, encoded, step.src);
    images_.add(step.src, block);
  }
  for (const Ref& sum : sums_) {
    if (!overlap(sum, step.src)) continue;
    if (sent_sums_.empty() || sent_sums_.back() != step.src) sent_sums_.push_back(step.src);
    result_.encodes_sums = true;
  }
  add_message(step, round, wire(block, step.src, round));
  return {};
}

// Whether what is sent is used on this rank too, which must then see the bytes that the others get.
bool Rewriter::is_kept(const Step& send) const {
  const std::span<const Step> next = uses_.next(send.src, send);
  if (next.empty()) return send.src.buffer == Buffer::kOutput;
  const auto reads = [&](const Step& step) { return step.peer < 0 && overlap(step.src, send.src); };
  const StepKind head = next.front().kind;
  return std::any_of(next.begin(), next.end(), reads) || (head != StepKind::kRecv && head != StepKind::kCopy);
}

Status Rewriter::rewrite_recv(const Step& step) {
  const int round = 2 * step.round + 1;
  if (step.dst.n_chunks == 0) {
    add_message(step, round, step.dst);
    return {};
  }
  for (const Ref& sent : sent_sums_)
    if (overlap(sent, step.dst)) return unsupported(step, "a sum that was not complete was sent on");
  images_.forget(step.dst);
  const int block = new_block(step.dst.n_chunks, round);
  const Ref encoded = wire(block, step.dst, round);
  add_message(step, round, encoded);
  if (step.dst.buffer != Buffer::kScratch || is_added_to(step))
    add_local(StepKind::kDecode, round, encoded, step.dst);
  images_.add(step.dst, block);
  return {};
}

// Whether what is received is a sum's first operand later: whoever else reads it reads its image.
bool Rewriter::is_added_to(const Step& recv) const {
  std::span<const Step> next = uses_.next(recv.dst, recv);
  while (!next.empty() && !overlap(next.front().dst, recv.dst)) next = uses_.next(recv.dst, next.front());
  if (next.empty()) return false;
  const StepKind head = next.front().kind;
  return head != StepKind::kRecv && head != StepKind::kCopy;
}

Status Rewriter::rewrite_reduction(std::span<const Step> group) {
  const Step& head = group.front();
  std::vector<Step> operands(group.begin(), group.end());
  const bool receives = std::any_of(group.begin(), group.end(), [](const Step& s) { return s.peer >= 0; });
  if (receives && !sent_sums_.empty()) return unsupported(head, "sums of sums would be encoded at every hop");
  Ref dst = head.dst;
  const bool overwrites = head.kind == StepKind::kRecv || head.kind == StepKind::kCopy;
  if (overwrites && group.size() > 1 && group[1].peer < 0 && same_memory(group[1].src, dst, true)) {
    // The caller's own share may lie where the sum goes: it comes first, which changes no bit, as a + b = b +
    // a.
    std::swap(operands[0], operands[1]);
  } else if (overwrites && must_read_dst_late(group)) {
    dst = make_ref(Buffer::kScratch, dst.chunk, dst.n_chunks, result_.n_scratch);
    result_.n_scratch += dst.n_chunks;
  }
  for (size_t i = 0; i < operands.size(); ++i) TERN_TRY(add_operand(operands[i], dst, overwrites && i == 0));
  if (dst != head.dst) add_local(StepKind::kCopy, 2 * head.round + 1, dst, head.dst);
  images_.forget(head.dst);
  if (receives) sums_.push_back(head.dst);
  if (group.size() > 1 || head.kind != StepKind::kCopy) return {};
  TERN_ASSIGN(const int block, image_of(head.src, head));
  if (block >= 0) images_.add(head.dst, block);
  return {};
}

// Decoding shares one by one writes dst early, unlike the dense reduction, which reads all its operands
// first.
bool Rewriter::must_read_dst_late(std::span<const Step> group) const {
  return std::any_of(group.begin() + 1, group.end(), [&](const Step& step) {
    return step.peer < 0 && !images_.has(step.src) && same_memory(step.src, step.dst, true);
  });
}

Status Rewriter::add_operand(const Step& step, const Ref& dst, bool is_first) {
  const int round = 2 * step.round + 1;
  const StepKind decode = is_first ? StepKind::kDecode : StepKind::kDecodeAccumulate;
  if (step.peer >= 0) {
    const int block = new_block(dst.n_chunks, round);
    const Ref encoded = wire(block, dst, round);
    add_message(step, round, encoded);
    add_local(decode, round, encoded, dst);
    return {};
  }
  TERN_ASSIGN(const int block, image_of(step.src, step));
  if (block >= 0)
    add_local(decode, round, wire(block, step.src, round), dst);
  else
    add_local(is_first ? StepKind::kCopy : StepKind::kReduce, round, step.src, dst);
  return {};
}

int Rewriter::new_block(int n_chunks, int round) {
  blocks_.push_back({n_chunks, round, round});
  return static_cast<int>(blocks_.size()) - 1;
}

// The block as a ref whose slot is its number, until place_blocks() has run.
Ref Rewriter::wire(int block, const Ref& chunks, int round) {
  Block& b = blocks_[static_cast<size_t>(block)];
  b.last_round = std::max(b.last_round, round);
  return make_ref(Buffer::kWire, chunks.chunk, chunks.n_chunks, block);
}

void Rewriter::add_local(StepKind kind, int round, Ref src, Ref dst) {
  result_.steps.push_back({kind, -1, static_cast<uint16_t>(round), src, dst});
}

// The same message, of encoded bytes or empty; what a receive reduced is received and decoded.
void Rewriter::add_message(const Step& original, int round, Ref ref) {
  Step step{original.kind, original.peer, static_cast<uint16_t>(round), {}, {}};
  if (step.kind == StepKind::kRecvReduce) step.kind = StepKind::kRecv;
  (step.kind == StepKind::kSend ? step.src : step.dst) = ref;
  result_.steps.push_back(step);
}

Result<int> Rewriter::image_of(const Ref& memory, const Step& step) const {
  const Images::Image* image = images_.find(memory);
  if (image == nullptr) return -1;
  if (image->memory == memory) return image->block;
  return unsupported(step, "it cuts encoded chunks differently than before");
}

Error Rewriter::unsupported(const Step& step, std::string_view why) const {
  return error(Code::kUnsupported, "{} by {} cannot be encoded: round {}, {}: {}", name(plan_.collective),
               plan_.algorithm, step.round, to_string(step), why);
}

}  // namespace

Result<Plan> with_codec(const Plan& plan) {
  return Rewriter(plan).run();
}

}  // namespace tern
