#include "runtime/transport/mailbox.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "kernels/copy.h"

namespace tern::mailbox {
namespace {

/// Sleepers look for lost peers this often; a lost rank is noticed within this time.
constexpr auto kLookEvery = std::chrono::milliseconds(20);

template <class T>
T* at(std::byte* region, size_t offset) {
  return reinterpret_cast<T*>(region + offset);
}

}  // namespace

struct Mailbox::SendState {
  enum Phase : uint32_t { kQueued, kLent, kDone } phase = kQueued;
  uint32_t number = 0;  ///< kLent: the message that must be released
  size_t n_posted = 0;  ///< bytes handed over in pieces
  SendRequest* next = nullptr;

  static SendState& make(SendRequest& request) { return *new (request.state.data()) SendState(); }
  static SendState& of(SendRequest& request) {
    return *std::launder(reinterpret_cast<SendState*>(request.state.data()));
  }
};

struct Mailbox::RecvState {
  enum Phase : uint32_t { kQueued, kDone } phase = kQueued;
  bool held = false;  ///< `data` is a view: message `number` is to be released
  uint32_t number = 0;
  size_t n_arrived = 0;  ///< bytes of pieces
  RecvRequest* next = nullptr;

  static RecvState& make(RecvRequest& request) { return *new (request.state.data()) RecvState(); }
  static RecvState& of(RecvRequest& request) {
    return *std::launder(reinterpret_cast<RecvState*>(request.state.data()));
  }
};

Mailbox::Mailbox(Connection connection)
    : connection_(std::move(connection)),
      region_(connection_.region->get().data),
      fault_(at<Fault>(region_, Layout::fault())),
      bell_(at<Bell>(region_, connection_.layout.bell(connection_.self))),
      small_(connection_.layout.small, {region_, connection_.layout.small_pool(connection_.self)},
             connection_.layout.n_ranks, StagingPool::Reuse::kLazy),
      large_(connection_.layout.large, {region_, connection_.layout.large_pool(connection_.self)},
             connection_.layout.n_ranks, StagingPool::Reuse::kWarm),
      looked_at_(Clock::now()) {
  static_assert(sizeof(SendState) <= sizeof(SendRequest::state) &&
                sizeof(RecvState) <= sizeof(RecvRequest::state));
  const Layout& layout = connection_.layout;
  const uint32_t self = connection_.self;
  peers_.resize(layout.n_ranks);
  member_of_rank_.resize(static_cast<size_t>(connection_.ranks.back()) + 1);
  for (uint32_t i = 0; i < layout.n_ranks; ++i) {
    Peer& peer = peers_[i];
    peer.rank = connection_.ranks[i];
    peer.member = i;
    peer.out = at<Ring>(region_, layout.ring(self, i));
    peer.in = at<Ring>(region_, layout.ring(i, self));
    peer.bell = at<Bell>(region_, layout.bell(i));
    peer.view_base = connection_.view_bases[i];
    member_of_rank_[static_cast<size_t>(peer.rank)] = i;
  }
}

Mailbox::~Mailbox() {
  // release: a peer that sees the mark also sees every message sent before it.
  bell_->closed.store(1, std::memory_order_release);
}

bool Mailbox::shares(const void* data, size_t n_bytes) const {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(data) - connection_.shared_first;  // wraps when it lies before
  return n_bytes > kSmallBytes && offset < connection_.shared_bytes &&
         n_bytes <= connection_.shared_bytes - offset;
}

// ---- sending

void Mailbox::send(SendRequest& request) {
  SendState& state = SendState::make(request);
  if (failed()) return;
  Peer& peer = peer_of(request.peer);
  if (peer.first_send == nullptr && post(peer, request, state)) return;
  (peer.first_send == nullptr ? peer.first_send : SendState::of(*peer.last_send).next) = &request;
  peer.last_send = &request;
}

Poll Mailbox::poll(SendRequest& request) {
  if (failed()) [[unlikely]]
    return Poll::kFailed;
  Peer& peer = peer_of(request.peer);
  SendState& state = SendState::of(request);
  if (state.phase == SendState::kQueued) push_sends(peer);
  if (state.phase == SendState::kLent &&
      is_released(peer.out->acks[(state.number - 1) % kRingSlots], state.number)) {
    state.phase = SendState::kDone;
    made_progress();
  }
  return state.phase == SendState::kDone ? Poll::kDone : pending(peer);
}

void Mailbox::push_sends(Peer& peer) {
  while (peer.first_send != nullptr) {
    SendState& state = SendState::of(*peer.first_send);
    if (!post(peer, *peer.first_send, state)) return;
    peer.first_send = state.next;
    made_progress();
  }
}

/// The slot of the next message, or null while the receiver has not released the message that was in it.
Slot* Mailbox::free_slot(Peer& peer) {
  if (static_cast<int32_t>(peer.next_out - peer.free_until) > 0) {
    // One look at the line of acks serves as many messages as it shows released.
    for (uint32_t i = 0; i < kRingSlots; ++i) {
      const uint32_t number = peer.free_until + 1;
      if (!is_released(peer.out->acks[(number - 1) % kRingSlots], number - kRingSlots)) break;
      peer.free_until = number;
    }
    if (static_cast<int32_t>(peer.next_out - peer.free_until) > 0) return nullptr;
  }
  return &peer.out->slots[(peer.next_out - 1) % kRingSlots];
}

void Mailbox::hand_over(Peer& peer, Slot& slot, Kind kind, const SendRequest& request) {
  slot.kind = kind;
  slot.n_bytes = request.n_bytes;
  slot.envelope = request.envelope;
  // seq_cst: the first half of bell.h's protocol; it includes the release that makes slot and payload
  // visible.
  slot.turn.store(peer.next_out, std::memory_order_seq_cst);
  ++peer.next_out;
  ring_if_armed(*peer.bell);
}

/// Hands a message over; false when it cannot be done (wholly) yet.
bool Mailbox::post(Peer& peer, SendRequest& request, SendState& state) {
  if (request.n_bytes <= kInlineBytes) return post_inline(peer, request, state);
  if (request.n_bytes <= kSmallBytes) return post_small(peer, request, state);
  const bool is_remote = request.lands && request.n_bytes >= kRemoteBytes && !connection_.processes.empty();
  if (is_remote || shares(request.data, request.n_bytes)) return post_lent(peer, request, state);
  return post_staged(peer, request, state);
}

bool Mailbox::post_inline(Peer& peer, SendRequest& request, SendState& state) {
  Slot* slot = free_slot(peer);
  if (slot == nullptr) return false;
  if (request.n_bytes > 0) std::memcpy(slot->payload, request.data, request.n_bytes);
  hand_over(peer, *slot, Kind::kInline, request);
  state.phase = SendState::kDone;
  return true;
}

bool Mailbox::post_small(Peer& peer, SendRequest& request, SendState& state) {
  Slot* slot = free_slot(peer);
  if (slot == nullptr) return false;
  const auto staging = small_.find(peer.member);
  if (!staging) return false;
  std::memcpy(small_.data(*staging), request.data, request.n_bytes);
  slot->location = {small_.offset(*staging), 0, 0};
  small_.lend(*staging, peer.member, peer.out->acks[(peer.next_out - 1) % kRingSlots], peer.next_out);
  hand_over(peer, *slot, Kind::kStaged, request);
  state.phase = SendState::kDone;
  return true;
}

/// Memory that the receiver reads where it is, mapped or through the kernel.
bool Mailbox::post_lent(Peer& peer, SendRequest& request, SendState& state) {
  Slot* slot = free_slot(peer);
  if (slot == nullptr) return false;
  const bool is_mapped = shares(request.data, request.n_bytes);
  const uintptr_t base = is_mapped ? connection_.view_bases[connection_.self] : 0;
  slot->location = {reinterpret_cast<uintptr_t>(request.data) - base, 0, 0};
  state.number = peer.next_out;
  state.phase = SendState::kLent;
  hand_over(peer, *slot, is_mapped ? Kind::kView : Kind::kRemote, request);
  return true;
}

bool Mailbox::post_staged(Peer& peer, SendRequest& request, SendState& state) {
  const size_t piece_bytes = request.lands ? std::min(kPieceBytes, large_.slot_bytes()) : large_.slot_bytes();
  const bool whole = request.n_bytes <= piece_bytes;
  while (state.n_posted < request.n_bytes) {
    Slot* slot = free_slot(peer);
    if (slot == nullptr) return false;
    const auto staging = large_.find(peer.member);
    if (!staging) return false;
    const size_t n = std::min(piece_bytes, request.n_bytes - state.n_posted);
    std::memcpy(large_.data(*staging), static_cast<const std::byte*>(request.data) + state.n_posted, n);
    slot->location = {large_.offset(*staging), state.n_posted, n};
    large_.lend(*staging, peer.member, peer.out->acks[(peer.next_out - 1) % kRingSlots], peer.next_out);
    hand_over(peer, *slot, whole ? Kind::kStaged : Kind::kPiece, request);
    state.n_posted += n;
  }
  state.phase = SendState::kDone;
  return true;
}

// ---- receiving

void Mailbox::recv(RecvRequest& request) {
  RecvState::make(request);
  request.data = nullptr;
  if (failed()) return;
  Peer& peer = peer_of(request.peer);
  (peer.first_recv == nullptr ? peer.first_recv : RecvState::of(*peer.last_recv).next) = &request;
  peer.last_recv = &request;
}

Poll Mailbox::poll(RecvRequest& request) {
  if (failed()) [[unlikely]]
    return Poll::kFailed;
  Peer& peer = peer_of(request.peer);
  RecvState& state = RecvState::of(request);
  if (state.phase == RecvState::kQueued) pull_receives(peer);
  return state.phase == RecvState::kDone ? Poll::kDone : pending(peer);
}

/// Matches arrived messages with posted receives.
void Mailbox::pull_receives(Peer& peer) {
  while (peer.first_recv != nullptr) {
    const Slot& slot = peer.in->slots[(peer.next_in - 1) % kRingSlots];
    // seq_cst: the last half of bell.h's protocol; it includes the acquire that makes slot and payload
    // visible.
    if (slot.turn.load(std::memory_order_seq_cst) != peer.next_in) return;
    RecvState& state = RecvState::of(*peer.first_recv);
    const bool is_whole = accept(peer, *peer.first_recv, state);
    if (failed_) [[unlikely]]
      return;
    if (!is_whole) continue;
    state.phase = RecvState::kDone;
    peer.first_recv = state.next;
    made_progress();
  }
}

const std::byte* Mailbox::payload(const Peer& peer, const Slot& slot) const {
  if (slot.kind == Kind::kInline) return slot.payload;
  if (slot.kind == Kind::kView) {
    // A number and not a pointer: the base of in-process views is 0, their location the address itself.
    return reinterpret_cast<const std::byte*>(peer.view_base +  // NOLINT(performance-no-int-to-ptr)
                                              slot.location.at);
  }
  return region_ + slot.location.at;
}

/// Takes the next message of the peer for the request; false when there is more of it to come.
bool Mailbox::accept(Peer& peer, RecvRequest& request, RecvState& state) {
  const Slot& slot = peer.in->slots[(peer.next_in - 1) % kRingSlots];
  if (slot.kind == Kind::kPiece) return accept_piece(peer, request, state);
  request.envelope = slot.envelope;
  const uint32_t number = peer.next_in++;
  if (slot.n_bytes != request.n_bytes) {
    request.n_bytes = slot.n_bytes;
    acknowledge(peer, number);
    return true;
  }
  if (slot.kind == Kind::kRemote) {
    read_remote(peer, slot, request);
    request.data = request.into;
    acknowledge(peer, number);
    return true;
  }
  request.data = payload(peer, slot);
  state.number = number;
  state.held = true;
  return true;
}

/// Copies the payload out of the sender's memory to `into`. Fails the transport when the kernel refuses.
void Mailbox::read_remote(const Peer& peer, const Slot& slot, const RecvRequest& request) {
  TERN_CHECK(request.into != nullptr);  // see RecvRequest::into
  size_t n_read = 0;
  while (n_read < slot.n_bytes) {
    const iovec to{static_cast<std::byte*>(request.into) + n_read, slot.n_bytes - n_read};
    // An address of another process. NOLINTNEXTLINE(performance-no-int-to-ptr)
    const iovec from{reinterpret_cast<void*>(slot.location.at + n_read), slot.n_bytes - n_read};
    const ssize_t n = ::process_vm_readv(connection_.processes[peer.member], &to, 1, &from, 1, 0);
    if (n <= 0) {
      const Code code = errno == ESRCH ? Code::kPeerLost : Code::kIo;
      return fail(error_at(peer.rank, code, "rank {} cannot read {} bytes from the process of rank {}: {}",
                           connection_.ranks[connection_.self], slot.n_bytes, peer.rank,
                           n == 0 ? "nothing was read" : std::system_category().message(errno)));
    }
    n_read += static_cast<size_t>(n);
  }
}

bool Mailbox::accept_piece(Peer& peer, RecvRequest& request, RecvState& state) {
  const Slot& slot = peer.in->slots[(peer.next_in - 1) % kRingSlots];
  const bool fits = slot.n_bytes == request.n_bytes;
  if (fits) {
    TERN_CHECK(request.into != nullptr);  // see RecvRequest::into
    copy(static_cast<std::byte*>(request.into) + slot.location.piece_offset, payload(peer, slot),
         slot.location.piece_bytes, {.stream = slot.n_bytes >= kStreamBytes});
  }
  state.n_arrived += slot.location.piece_bytes;
  const bool last = state.n_arrived == slot.n_bytes;
  if (last) {
    request.envelope = slot.envelope;
    request.n_bytes = slot.n_bytes;
    request.data = fits ? request.into : nullptr;
  }
  acknowledge(peer, peer.next_in++);
  return last;
}

void Mailbox::release(RecvRequest& request) {
  RecvState& state = RecvState::of(request);
  if (!state.held) return;
  state.held = false;
  acknowledge(peer_of(request.peer), state.number);
}

void Mailbox::acknowledge(Peer& peer, uint32_t number) {
  // seq_cst: the first half of bell.h's protocol; it includes the release that keeps our reads of the payload
  // before it.
  peer.in->acks[(number - 1) % kRingSlots].store(number, std::memory_order_seq_cst);
  ring_if_armed(*peer.bell);
}

// ---- waiting and failing

uint64_t Mailbox::arm() {
  armed_ = true;
  return mailbox::arm(*bell_);
}

/// Whoever armed and then saw progress has something to do: its sleep() must return at once.
void Mailbox::made_progress() {
  if (!armed_) [[likely]]
    return;
  armed_ = false;
  disarm(*bell_);
}

void Mailbox::sleep(uint64_t token, Clock::duration at_most) {
  const auto expected = static_cast<uint32_t>(token);
  Clock::time_point now = Clock::now();
  const Clock::time_point end = now + std::min<Clock::duration>(at_most, std::chrono::hours(1));
  while (armed_ && now < end && !has_rung(*bell_, expected) && !failed()) {
    sleep_on(*bell_, expected, std::min<Clock::duration>(end - now, kLookEvery));
    now = Clock::now();
    if (now - looked_at_ >= kLookEvery) {
      looked_at_ = now;
      look_for_lost_peers();
    }
  }
  made_progress();
}

void Mailbox::look_for_lost_peers() {
  for (Peer& peer : peers_) {
    // acquire: its messages are visible before we conclude that none will come.
    if (peer.closed || peer.bell->closed.load(std::memory_order_acquire) == 0) continue;
    peer.closed = true;
    made_progress();  // whoever waits for it must poll to learn that it waits in vain
  }
  if (const auto rank = connection_.watch.ended(); rank && !peer_of(*rank).closed) {
    return fail(error_at(*rank, Code::kPeerLost, "the process of rank {} ended", *rank));
  }
  const auto lost = connection_.store->failure();
  if (!lost) return;
  const auto& ranks = connection_.ranks;
  const bool ours = std::binary_search(ranks.begin(), ranks.end(), lost->rank) && !peer_of(lost->rank).closed;
  if (ours || lost->rank < 0) fail(*lost);
}

/// The answer for a request that cannot go on: a peer that is through will never let it.
Poll Mailbox::pending(const Peer& peer) {
  if (!peer.closed) [[likely]]
    return Poll::kPending;
  fail(error_at(peer.rank, Code::kPeerLost,
                "rank {} closed its end of the {} transport while rank {} waited for it", peer.rank,
                connection_.name, connection_.ranks[connection_.self]));
  return Poll::kFailed;
}

bool Mailbox::failed() {
  if (failed_) [[unlikely]]
    return true;
  if (!has_fault(*fault_)) [[likely]]
    return false;
  const auto published = read(*fault_);
  if (published) note(*published);
  return failed_;
}

/// From here on this rank's polls fail.
void Mailbox::note(const Error& error) {
  failed_ = true;
  failure_ = error;
  for (Peer& peer : peers_) {  // the requests belong to callers who may now drop them
    peer.first_send = nullptr;
    peer.first_recv = nullptr;
  }
  made_progress();
}

/// An error that this rank found: it stands for itself, and the others learn of it.
void Mailbox::fail(const Error& error) {
  if (failed()) return;
  note(error);
  abort(error);
}

void Mailbox::abort(const Error& error) {
  publish(*fault_, error);
  for (Peer& peer : peers_) ring(*peer.bell);
}

}  // namespace tern::mailbox
