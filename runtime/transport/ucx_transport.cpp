#include "runtime/transport/ucx_transport.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace tern::ucx {
namespace {

/// Sleepers look for aborts and lost peers this often.
constexpr auto kLookEvery = std::chrono::milliseconds(20);
constexpr Seconds kGoodbyeTime{5};
constexpr Seconds kLastWordsTime{0.1};

/// Of active messages, in the order of Events::on_active_message.
enum MessageId : unsigned { kMessage, kGoodbye, kAcknowledgement };

/// In SendState::request: UCX did not take the message, because its end point had failed.
/// NOLINTNEXTLINE(performance-no-int-to-ptr): a mark, never followed
void* const kRefused = reinterpret_cast<void*>(uintptr_t{1});

}  // namespace

/// On the wire; ranks of one job run one build on machines of one byte order.
struct UcxTransport::Header {
  uint64_t key = 0;
  uint32_t sender = 0;  ///< member
  uint32_t number = 0;  ///< of the message between the two; of a goodbye: messages sent before it
  Envelope envelope;
};

struct UcxTransport::SendState {
  Header header;            // UCX reads it until the send is complete
  void* request = nullptr;  ///< UCX's; null when complete

  static SendState& make(SendRequest& r) { return *new (r.state.data()) SendState(); }
  static SendState& of(SendRequest& r) { return *std::launder(reinterpret_cast<SendState*>(r.state.data())); }
};

struct UcxTransport::RecvState {
  enum Phase : uint32_t { kWaiting, kPulling, kDone } phase = kWaiting;
  uint32_t number = 0;
  RecvRequest* next = nullptr;  ///< posted later
  void* held = nullptr;         ///< UCX's buffer, of which `data` is a view
  void* request = nullptr;      ///< UCX's, while pulling

  static RecvState& make(RecvRequest& r) { return *new (r.state.data()) RecvState(); }
  static RecvState& of(RecvRequest& r) { return *std::launder(reinterpret_cast<RecvState*>(r.state.data())); }
};

struct UcxTransport::Arrival {
  uint32_t number = 0;
  Envelope envelope;
  size_t n_bytes = 0;
  void* data = nullptr;
  bool is_rendezvous = false;
};

struct UcxTransport::Peer {
  Member member;
  size_t place = 0;        ///< among the members
  ucp_ep_h out = nullptr;  ///< made by us
  ucp_ep_h in = nullptr;   ///< made by the peer
  uint32_t next_out = 0;
  uint32_t next_in = 0;
  RecvRequest* first_recv = nullptr;  ///< posted, without a message; ascending numbers
  RecvRequest* last_recv = nullptr;
  std::vector<Arrival> arrived;  ///< without a receive
  uint32_t n_arrived = 0;        ///< messages, in whatever order
  uint32_t n_sent_before_leaving = 0;
  bool awaits_acknowledgement = false;
  Header goodbye;
  Header acknowledgement;
};

// ---- life

Result<std::unique_ptr<Transport>> UcxTransport::create(Connection connection) {
  std::vector<int> ranks;
  for (const Member& member : connection.members) ranks.push_back(member.rank);
  std::unique_ptr<UcxTransport> transport(new UcxTransport(std::move(connection), ranks));
  if (transport->detector_.wake_fd() < 0)
    return error(Code::kIo, "no event descriptor for the ucx transport");
  const Events events = {
      transport.get(), &on_error, &on_accepted, {&on_message, &on_goodbye, &on_acknowledgement}};
  std::vector<uint64_t> clients;
  for (const Peer& peer : transport->peers_) clients.push_back(peer.member.client);
  TERN_TRY(transport->connection_.worker->start(events, std::move(clients)));
  return std::unique_ptr<Transport>(std::move(transport));
}

UcxTransport::UcxTransport(Connection connection, std::span<const int> ranks)
    : connection_(std::move(connection)),
      detector_(connection_.store, connection_.abort_key, ranks),
      peers_(ranks.size()),
      member_of_rank_(static_cast<size_t>(ranks.back()) + 1) {
  static_assert(sizeof(SendState) <= sizeof(SendRequest::state) &&
                sizeof(RecvState) <= sizeof(RecvRequest::state));
  for (size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].member = connection_.members[i];
    peers_[i].place = i;
    member_of_rank_[static_cast<size_t>(peers_[i].member.rank)] = static_cast<uint32_t>(i);
  }
}

UcxTransport::~UcxTransport() {
  if (!failed()) {
    for (Peer& peer : peers_) say_goodbye(peer);
  }
  const Deadline deadline = Deadline::after(kGoodbyeTime);
  while (!failed() && awaits_acknowledgement() && !deadline.passed()) sleep(arm(), kLookEvery);
  if (!failed()) connection_.worker->flush(kLastWordsTime);
  close();
}

/// From here on UCX touches neither callers' memory nor ours.
void UcxTransport::close() {
  is_closed_ = true;  // what arrives while the worker ends is nobody's
  connection_.worker.reset();
}

void UcxTransport::say_goodbye(Peer& peer) {
  // A peer that we sent nothing to may wait for us all the same: it is told on its own end point.
  const ucp_ep_h endpoint = peer.out != nullptr ? peer.out : peer.in;
  if (endpoint == nullptr || detector_.has_left(peer.place) || detector_.is_suspect(peer.place)) return;
  peer.awaits_acknowledgement = peer.next_out > 0;
  peer.goodbye = {peer.member.key_to, connection_.self, peer.next_out, {}};
  tell(endpoint, kGoodbye, peer.goodbye);
}

void UcxTransport::acknowledge_goodbye(Peer& peer) {
  const ucp_ep_h endpoint = peer.in != nullptr ? peer.in : peer.out;
  if (endpoint == nullptr || detector_.is_suspect(peer.place) || peer.n_arrived != peer.n_sent_before_leaving)
    return;
  peer.acknowledgement = {peer.member.key_to, connection_.self, peer.n_arrived, {}};
  tell(endpoint, kAcknowledgement, peer.acknowledgement);
}

bool UcxTransport::awaits_acknowledgement() const {
  // A peer that leaves too needs nothing more from us.
  return std::any_of(peers_.begin(), peers_.end(), [this](const Peer& peer) {
    return peer.awaits_acknowledgement && !detector_.has_left(peer.place) &&
           !detector_.is_suspect(peer.place);
  });
}

/// `header` must stay until the transport ends.
void UcxTransport::tell(ucp_ep_h endpoint, unsigned id, const Header& header) {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
  params.cb.send = [](void* request, ucs_status_t, void*) { ucp_request_free(request); };
  ucp_am_send_nbx(endpoint, id, &header, sizeof(Header), nullptr, 0, &params);
}

UcxTransport::Peer& UcxTransport::peer_of(int rank) {
  return peers_[member_of_rank_[static_cast<size_t>(rank)]];
}

// ---- sending

bool UcxTransport::connect(Peer& peer) {
  if (peer.out != nullptr) [[likely]]
    return true;
  const auto endpoint = connection_.worker->connect(peer.member.address);
  if (!endpoint) {
    suspect(peer, UCS_ERR_UNREACHABLE);
    return false;
  }
  peer.out = *endpoint;
  return true;
}

void UcxTransport::send(SendRequest& request) {
  SendState& state = SendState::make(request);
  if (failed()) return;
  Peer& peer = peer_of(request.peer);
  state.request = kRefused;
  if (detector_.has_left(peer.place) || detector_.is_suspect(peer.place) || !connect(peer)) return;
  state.header = {peer.member.key_to, connection_.self, peer.next_out++, request.envelope};
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &on_sent;
  params.user_data = this;
  const ucs_status_ptr_t sent = ucp_am_send_nbx(peer.out, kMessage, &state.header, sizeof(Header),
                                                request.data, request.n_bytes, &params);
  if (!UCS_PTR_IS_ERR(sent)) {
    state.request = sent;
    return;
  }
  suspect(peer, UCS_PTR_STATUS(sent));
}

void UcxTransport::on_sent(void* /*request*/, ucs_status_t /*status*/, void* self) {
  ++static_cast<UcxTransport*>(self)->n_events_;
}

Poll UcxTransport::poll(SendRequest& request) {
  if (failed()) [[unlikely]]
    return Poll::kFailed;
  SendState& state = SendState::of(request);
  if (state.request == nullptr) return Poll::kDone;
  connection_.worker->progress();
  Peer& peer = peer_of(request.peer);
  if (state.request != kRefused) {
    const ucs_status_t status = ucp_request_check_status(state.request);
    if (status == UCS_INPROGRESS) return pending(peer, false);
    ucp_request_free(state.request);
    state.request = status == UCS_OK ? nullptr : kRefused;
    if (status == UCS_OK) return Poll::kDone;
    suspect(peer, status);
  }
  return pending(peer, detector_.has_left(peer.place));
}

// ---- receiving

void UcxTransport::recv(RecvRequest& request) {
  RecvState& state = RecvState::make(request);
  request.data = nullptr;
  if (failed()) return;
  Peer& peer = peer_of(request.peer);
  state.number = peer.next_in++;
  const auto arrival = std::find_if(peer.arrived.begin(), peer.arrived.end(),
                                    [&](const Arrival& a) { return a.number == state.number; });
  if (arrival != peer.arrived.end()) {
    const Arrival found = *arrival;
    peer.arrived.erase(arrival);
    return match(peer, request, found);
  }
  (peer.first_recv == nullptr ? peer.first_recv : RecvState::of(*peer.last_recv).next) = &request;
  peer.last_recv = &request;
}

/// The peer that a header comes from; null when it does not belong to this communicator.
UcxTransport::Peer* UcxTransport::sender_of(const void* header, size_t n_header, Header& out) {
  if (is_closed_ || n_header != sizeof(Header)) return nullptr;
  std::memcpy(&out, header, sizeof(Header));
  if (out.sender >= peers_.size()) return nullptr;
  Peer& peer = peers_[out.sender];
  return out.key == peer.member.key_from ? &peer : nullptr;
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX\'s
ucs_status_t UcxTransport::on_message(void* self, const void* header, size_t n_header, void* data,
                                      size_t n_bytes, const ucp_am_recv_param_t* param) {
  auto& transport = *static_cast<UcxTransport*>(self);
  Header from;
  Peer* const peer = transport.sender_of(header, n_header, from);
  if (peer == nullptr) return UCS_OK;  // dropped
  const bool is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool is_ours_to_release =
      is_rendezvous || (n_bytes > 0 && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0);
  ++transport.n_events_;
  ++peer->n_arrived;
  transport.take(*peer,
                 {from.number, from.envelope, n_bytes, is_ours_to_release ? data : nullptr, is_rendezvous});
  if (transport.detector_.has_left(peer->place)) transport.acknowledge_goodbye(*peer);
  return is_ours_to_release ? UCS_INPROGRESS : UCS_OK;
}

/// Gives a message to the receive with its number, or keeps it for that.
void UcxTransport::take(Peer& peer, const Arrival& arrival) {
  RecvRequest* before = nullptr;
  RecvRequest* request = peer.first_recv;
  while (request != nullptr && RecvState::of(*request).number != arrival.number) {
    before = request;
    request = RecvState::of(*request).next;
  }
  if (request == nullptr) {
    peer.arrived.push_back(arrival);
    return;
  }
  (before == nullptr ? peer.first_recv : RecvState::of(*before).next) = RecvState::of(*request).next;
  if (peer.last_recv == request) peer.last_recv = before;
  match(peer, *request, arrival);
}

void UcxTransport::match(Peer& peer, RecvRequest& request, const Arrival& arrival) {
  RecvState& state = RecvState::of(request);
  request.envelope = arrival.envelope;
  state.phase = RecvState::kDone;
  if (arrival.n_bytes != request.n_bytes) {
    request.n_bytes = arrival.n_bytes;
    drop(arrival);
  } else if (arrival.is_rendezvous) {
    pull(peer, request, arrival.data);
  } else if (arrival.n_bytes == 0) {
    request.data = request.into != nullptr ? request.into : &request;  // nothing to see, but not null
  } else {
    state.held = arrival.data;
    request.data = arrival.data;
  }
}

void UcxTransport::pull(Peer& peer, RecvRequest& request, void* descriptor) {
  RecvState& state = RecvState::of(request);
  TERN_CHECK(request.into != nullptr);  // see RecvRequest::into
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = &on_pulled;
  params.user_data = this;
  const ucs_status_ptr_t pulling =
      ucp_am_recv_data_nbx(connection_.worker->raw(), descriptor, request.into, request.n_bytes, &params);
  request.data = request.into;
  if (pulling == nullptr) return;
  state.phase = RecvState::kPulling;
  state.request = pulling;
  if (!UCS_PTR_IS_ERR(pulling)) return;
  state.request = nullptr;  // stays under way until the suspect is convicted
  suspect(peer, UCS_PTR_STATUS(pulling));
}

void UcxTransport::on_pulled(void* /*request*/, ucs_status_t /*status*/, size_t /*n_bytes*/, void* self) {
  ++static_cast<UcxTransport*>(self)->n_events_;
}

void UcxTransport::drop(const Arrival& arrival) const {
  if (arrival.data != nullptr) ucp_am_data_release(connection_.worker->raw(), arrival.data);
}

Poll UcxTransport::poll(RecvRequest& request) {
  if (failed()) [[unlikely]]
    return Poll::kFailed;
  RecvState& state = RecvState::of(request);
  if (state.phase == RecvState::kDone) return Poll::kDone;
  connection_.worker->progress();
  Peer& peer = peer_of(request.peer);
  if (state.phase == RecvState::kPulling && state.request != nullptr) {
    const ucs_status_t status = ucp_request_check_status(state.request);
    if (status != UCS_INPROGRESS) {
      ucp_request_free(std::exchange(state.request, nullptr));
      if (status == UCS_OK)
        state.phase = RecvState::kDone;
      else
        suspect(peer, status);
    }
  }
  if (state.phase == RecvState::kDone) return Poll::kDone;
  return pending(peer, detector_.has_left(peer.place) && state.number >= peer.n_sent_before_leaving);
}

void UcxTransport::release(RecvRequest& request) {
  RecvState& state = RecvState::of(request);
  if (state.held == nullptr || is_closed_) return;
  ucp_am_data_release(connection_.worker->raw(), std::exchange(state.held, nullptr));
}

// ---- waiting

void UcxTransport::sleep(uint64_t token, Clock::duration at_most) {
  const auto end = Clock::now() + std::min<Clock::duration>(at_most, std::chrono::hours(1));
  while (n_events_ == token && !failed()) {
    const auto left = end - Clock::now();
    if (left <= Clock::duration::zero()) return;
    if (connection_.worker->arm()) {
      const auto slice = std::chrono::nanoseconds(std::min<Clock::duration>(left, kLookEvery)).count();
      const timespec timeout = {0, slice};
      pollfd fds[] = {{connection_.worker->event_fd(), POLLIN, 0}, {detector_.wake_fd(), POLLIN, 0}};
      ppoll(fds, 2, &timeout, nullptr);
    }
    connection_.worker->progress();
  }
}

// ---- failing

void UcxTransport::on_accepted(void* self, uint64_t client, ucp_ep_h endpoint) {
  for (Peer& peer : static_cast<UcxTransport*>(self)->peers_) {
    if (peer.member.client == client) peer.in = endpoint;
  }
}

void UcxTransport::on_error(void* self, ucp_ep_h endpoint, ucs_status_t status) {
  auto& transport = *static_cast<UcxTransport*>(self);
  for (Peer& peer : transport.peers_) {
    if (peer.out == endpoint || peer.in == endpoint) transport.suspect(peer, status);
  }
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX\'s
ucs_status_t UcxTransport::on_goodbye(void* self, const void* header, size_t n_header, void* /*data*/,
                                      size_t /*n_bytes*/, const ucp_am_recv_param_t* /*param*/) {
  auto& transport = *static_cast<UcxTransport*>(self);
  Header from;
  Peer* const peer = transport.sender_of(header, n_header, from);
  if (peer == nullptr) return UCS_OK;
  transport.detector_.leave(peer->place);
  peer->n_sent_before_leaving = from.number;
  ++transport.n_events_;
  transport.acknowledge_goodbye(*peer);
  return UCS_OK;
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX\'s
ucs_status_t UcxTransport::on_acknowledgement(void* self, const void* header, size_t n_header, void* /*data*/,
                                              size_t /*n_bytes*/, const ucp_am_recv_param_t* /*param*/) {
  auto& transport = *static_cast<UcxTransport*>(self);
  Header from;
  Peer* const peer = transport.sender_of(header, n_header, from);
  if (peer == nullptr) return UCS_OK;
  peer->awaits_acknowledgement = false;
  ++transport.n_events_;
  return UCS_OK;
}

void UcxTransport::suspect(Peer& peer, ucs_status_t status) {
  detector_.suspect(peer.place, ucs_status_string(status));
}

/// From here on polls fail.
bool UcxTransport::failed() {
  if (!detector_.failed()) return false;
  if (!is_closed_) close();
  return true;
}

/// The answer for a request that cannot go on; it will never when the peer has left before its part was done.
Poll UcxTransport::pending(const Peer& peer, bool is_over) {
  if (is_over) [[unlikely]] {
    detector_.fail(error_at(peer.member.rank, Code::kPeerLost,
                            "rank {} closed its end of the ucx transport while rank {} waited for it",
                            peer.member.rank, connection_.members[connection_.self].rank));
  }
  return is_over && failed() ? Poll::kFailed : Poll::kPending;
}

}  // namespace tern::ucx
