// Messages over TCP sockets of our own: one for each direction between two ranks that is used.
//
// The system calls are all that a message costs: one to send it, one to receive it, and no copy but the
// system's own. Nothing is allocated for a message and nothing locked.
//
// Leaving: the system delivers what it has taken even after the sender's end, so that a rank which leaves
// only says goodbye behind its last frame. Failures: see failure_detector.h.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/handshake.h"
#include "runtime/transport/failure_detector.h"
#include "runtime/transport/tcp_door.h"
#include "runtime/transport/tcp_stream.h"
#include "runtime/transport/transport.h"

namespace tern::tcp {

/// A member of the communicator, as it published itself.
struct Member {
  int rank = -1;  ///< in the world
  std::string address;
  int port = 0;
  AuthKey key_to = {};  ///< for the greeting
};

struct Connection {
  std::unique_ptr<Door> door;
  std::vector<Member> members;   ///< ascending ranks
  uint32_t self = 0;             ///< this rank's place among them
  std::shared_ptr<Store> store;  ///< World's
  std::string abort_key;         ///< in the store
};

class TcpTransport final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> create(Connection connection);
  /// Says goodbye to the peers that it has connections with; at most 5 s, while their buffers are full.
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  std::string_view name() const override { return "tcp"; }
  bool shares(const void* /*data*/, size_t /*n_bytes*/) const override { return false; }
  bool writes_on_arrival() const override { return true; }
  void send(SendRequest& request) override;
  void recv(RecvRequest& request) override;
  Poll poll(SendRequest& request) override;
  Poll poll(RecvRequest& request) override;
  void release(RecvRequest& /*request*/) override {}
  uint64_t arm() override { return n_events_; }
  void sleep(uint64_t token, Clock::duration at_most) override;
  const Error& failure() const override { return detector_.error(); }
  void abort(const Error& error) override { detector_.abort(error); }

 private:
  struct Peer {
    size_t member = 0;
    Outgoing out;
    Incoming in;
    bool is_sending = false;    ///< is in sending_
    bool is_receiving = false;  ///< is in receiving_
  };

  TcpTransport(Connection connection, std::span<const int> ranks);
  Peer& peer_of(int rank) { return peers_[member_of_rank_[static_cast<size_t>(rank)]]; }

  void connect(Peer& peer);
  void admit();
  void progress_sends(Peer& peer);
  void progress_receives(Peer& peer);
  void progress_all_sends();
  void progress_others();
  void wait_and_progress(Clock::duration at_most);
  void look_for_goodbye(Peer& peer);
  void look_after(const Peer& peer, const Stream& stream);
  Poll pending(const Peer& peer);
  void say_goodbye();

  Connection connection_;
  FailureDetector detector_;
  std::vector<Peer> peers_;               // by member; never resized
  std::vector<uint32_t> member_of_rank_;  // by world rank
  std::vector<Peer*> sending_;            // with sends under way
  std::vector<Peer*> receiving_;          // with receives posted
  std::vector<pollfd> polled_;            // for wait_and_progress(): reserved once
  std::vector<Peer*> polled_peers_;
  uint64_t n_events_ = 0;
  unsigned n_polls_in_vain_ = 0;
};

}  // namespace tern::tcp
