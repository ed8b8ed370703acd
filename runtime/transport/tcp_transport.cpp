#include "runtime/transport/tcp_transport.h"

#include <sys/socket.h>

#include <algorithm>

#include "runtime/bootstrap/socket.h"

namespace tern::tcp {
namespace {

/// Sleepers look for aborts and lost peers this often.
constexpr auto kLookEvery = std::chrono::milliseconds(20);
/// Of polls that find nothing, one in so many looks at all peers: another rank may have to get rid of what it
/// sends here before it serves the one that is waited for.
constexpr unsigned kPollsPerLookAround = 4;
constexpr Seconds kGoodbyeTime{5};
/// Bytes under way inside this machine: left alone, the system lets them grow to megabytes, which then pass
/// through memory instead of a cache. Between machines it knows better how many the way holds. Found on 2
/// cores by all_reduce_perf -b 512K -e 32M with TERN_TRANSPORT=tcp.
constexpr int kSendBufferHere = 256 << 10;

std::vector<int> ranks_of(const std::vector<Member>& members) {
  std::vector<int> ranks;
  for (const Member& member : members) ranks.push_back(member.rank);
  return ranks;
}

}  // namespace

// ---- life

Result<std::unique_ptr<Transport>> TcpTransport::create(Connection connection) {
  const std::vector<int> ranks = ranks_of(connection.members);
  std::unique_ptr<TcpTransport> transport(new TcpTransport(std::move(connection), ranks));
  if (transport->detector_.wake_fd() < 0) {
    return error(Code::kIo, "no event descriptor for the tcp transport");
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

TcpTransport::TcpTransport(Connection connection, std::span<const int> ranks)
    : connection_(std::move(connection)),
      detector_(connection_.store, connection_.abort_key, ranks),
      peers_(ranks.size()),
      member_of_rank_(static_cast<size_t>(ranks.back()) + 1) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].member = i;
    member_of_rank_[static_cast<size_t>(ranks[i])] = static_cast<uint32_t>(i);
  }
  sending_.reserve(peers_.size());
  receiving_.reserve(peers_.size());
  polled_peers_.reserve(2 * peers_.size());
  polled_.reserve(2 * peers_.size() + 2);
}

TcpTransport::~TcpTransport() {
  if (!detector_.failed()) say_goodbye();
}

void TcpTransport::say_goodbye() {
  for (Peer* peer : receiving_) peer->in.abandon();
  receiving_.clear();
  std::vector<Peer*> is_cut;  // whoever ends before its sends are done has nothing more to say
  std::swap(is_cut, sending_);
  for (Peer* peer : is_cut) peer->out.abandon();
  for (Peer& peer : peers_) {
    if (peer.is_sending || detector_.has_left(peer.member)) continue;
    if (peer.out.state() == StreamState::kOpen) {
      peer.out.post_goodbye();
      progress_sends(peer);
    } else if (peer.in.state() == StreamState::kOpen) {
      peer.in.answer_goodbye();  // it may wait for us, to whom we never sent anything
    }
  }
  const Deadline deadline = Deadline::after(kGoodbyeTime);
  while (!sending_.empty() && !detector_.failed() && !deadline.passed()) wait_and_progress(kLookEvery);
}

// ---- sending and receiving

void TcpTransport::connect(Peer& peer) {
  const Member& member = connection_.members[peer.member];
  Result<Fd> fd = start_connecting(member.address, member.port);
  if (!fd) return detector_.suspect(peer.member, fd.error().message);
  const bool is_here = member.address == connection_.members[connection_.self].address;
  if (is_here) setsockopt(fd->get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferHere, sizeof kSendBufferHere);
  peer.out.open(std::move(*fd), greeting(connection_.self, member.key_to));
}

void TcpTransport::send(SendRequest& request) {
  Peer& peer = peer_of(request.peer);
  const bool is_first = !peer.out.is_pending();
  peer.out.post(request);
  if (detector_.failed()) return;
  if (peer.out.state() == StreamState::kAbsent && !detector_.has_left(peer.member)) connect(peer);
  if (is_first) progress_sends(peer);
}

void TcpTransport::recv(RecvRequest& request) {
  request.data = nullptr;
  Peer& peer = peer_of(request.peer);
  n_events_ += peer.in.post(request);
  if (peer.is_receiving || !peer.in.is_pending()) return;
  peer.is_receiving = true;
  receiving_.push_back(&peer);
}

void TcpTransport::progress_sends(Peer& peer) {
  n_events_ += peer.out.progress();
  look_after(peer, peer.out);
  if (peer.out.is_pending() == peer.is_sending) return;
  peer.is_sending = !peer.is_sending;
  if (peer.is_sending)
    sending_.push_back(&peer);
  else
    std::erase(sending_, &peer);
}

void TcpTransport::progress_receives(Peer& peer) {
  if (peer.in.state() == StreamState::kAbsent) [[unlikely]]
    admit();
  n_events_ += peer.in.progress();
  look_after(peer, peer.in);
  if (peer.in.is_pending() || !peer.is_receiving) return;
  peer.is_receiving = false;
  std::erase(receiving_, &peer);
}

void TcpTransport::look_after(const Peer& peer, const Stream& stream) {
  if (stream.state() == StreamState::kBroken) [[unlikely]]
    detector_.suspect(peer.member, stream.why());
  if (stream.state() != StreamState::kEnded || detector_.has_left(peer.member)) return;
  detector_.leave(peer.member);
  ++n_events_;  // whoever waits for it waits in vain
}

void TcpTransport::admit() {
  while (true) {
    Result<std::optional<Door::Guest>> guest = connection_.door->admit();
    if (!guest) {
      const int self = connection_.members[connection_.self].rank;
      return detector_.fail(error_at(self, guest.error().code, "rank {}: {}", self, guest.error().message));
    }
    if (!*guest) return;
    peers_[(*guest)->member].in.open(std::move((*guest)->fd));
    ++n_events_;
  }
}

Poll TcpTransport::poll(SendRequest& request) {
  if (detector_.failed()) [[unlikely]]
    return Poll::kFailed;
  if (Outgoing::is_done(request)) return Poll::kDone;
  Peer& peer = peer_of(request.peer);
  progress_sends(peer);
  if (Outgoing::is_done(request)) return Poll::kDone;
  progress_others();
  return Outgoing::is_done(request) ? Poll::kDone : pending(peer);
}

Poll TcpTransport::poll(RecvRequest& request) {
  if (detector_.failed()) [[unlikely]]
    return Poll::kFailed;
  if (Incoming::is_done(request)) return Poll::kDone;
  Peer& peer = peer_of(request.peer);
  progress_receives(peer);
  if (Incoming::is_done(request)) return Poll::kDone;
  progress_all_sends();
  progress_others();
  return Incoming::is_done(request) ? Poll::kDone : pending(peer);
}

void TcpTransport::progress_all_sends() {
  for (size_t i = sending_.size(); i > 0; --i) progress_sends(*sending_[i - 1]);  // which may take it out
}

void TcpTransport::progress_others() {
  if (++n_polls_in_vain_ % kPollsPerLookAround == 0) wait_and_progress(Clock::duration::zero());
}

/// The answer for a request that is not done; it never will be when the peer has left.
Poll TcpTransport::pending(const Peer& peer) {
  if (detector_.has_left(peer.member)) [[unlikely]] {
    const int rank = connection_.members[peer.member].rank;
    detector_.fail(error_at(rank, Code::kPeerLost,
                            "rank {} closed its end of the tcp transport while rank {} waited for it", rank,
                            connection_.members[connection_.self].rank));
  }
  return detector_.has_failed() ? Poll::kFailed : Poll::kPending;
}

// ---- waiting

void TcpTransport::sleep(uint64_t token, Clock::duration at_most) {
  const auto end = Clock::now() + std::min<Clock::duration>(at_most, std::chrono::hours(1));
  while (n_events_ == token && !detector_.failed()) {
    const auto left = end - Clock::now();
    if (left <= Clock::duration::zero()) return;
    wait_and_progress(std::min<Clock::duration>(left, kLookEvery));
  }
}

/// Waits until something can go on, and lets it. A socket on which nobody is expected to speak is not looked
/// at: what lies there wakes nobody.
void TcpTransport::wait_and_progress(Clock::duration at_most) {
  polled_.clear();
  polled_peers_.clear();
  const auto add = [this](Peer& peer, const Stream& stream, short events) {
    if (stream.state() != StreamState::kOpen) return;
    polled_.push_back({stream.fd(), events, 0});
    polled_peers_.push_back(&peer);
  };
  for (Peer* peer : sending_) add(*peer, peer->out, POLLOUT);
  const size_t n_sending = polled_.size();
  for (Peer* peer : receiving_) {
    if (peer->in.state() == StreamState::kAbsent)
      add(*peer, peer->out, POLLIN);
    else
      add(*peer, peer->in, POLLIN);
  }
  const size_t n_streams = polled_.size();
  polled_.push_back({detector_.wake_fd(), POLLIN, 0});
  connection_.door->add_to(polled_);

  const timespec timeout = {0, std::chrono::nanoseconds(at_most).count()};
  if (ppoll(polled_.data(), polled_.size(), &timeout, nullptr) <= 0) return;
  for (size_t i = 0; i < n_streams; ++i) {
    if (polled_[i].revents == 0) continue;
    Peer& peer = *polled_peers_[i];
    if (i < n_sending)
      progress_sends(peer);
    else if (peer.in.state() == StreamState::kAbsent)
      look_for_goodbye(peer);
    else
      progress_receives(peer);
  }
  for (size_t i = n_streams + 1; i < polled_.size(); ++i)
    if (polled_[i].revents != 0) return admit();
}

void TcpTransport::look_for_goodbye(Peer& peer) {
  peer.out.look_for_goodbye();
  look_after(peer, peer.out);
}

}  // namespace tern::tcp
