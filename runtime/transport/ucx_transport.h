// Messages over UCX active messages.
//
// Every rank sends on end points that it made itself and receives on those that it accepted. A message is one
// active message: a header of 32 bytes (key, sender, number, envelope) and the payload. Numbers, not arrival,
// match messages with receives, because eager and rendezvous messages overtake each other.
//
// Payloads: eager ones are handed out in place in UCX's buffer; a rendezvous is pulled into
// RecvRequest::into, once that is posted.
//
// Leaving: UCX throws away what it has received but not yet handed out when the sender closes the connection.
// So a rank that leaves says so, and waits until each peer to which it sent has acknowledged all its
// messages.
//
// Failures: see failure_detector.h; a broken connection shows as a failed end point.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/failure_detector.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx_worker.h"

namespace tern::ucx {

/// A member of the communicator, as it published itself.
struct Member {
  int rank = -1;  ///< in the world
  sockaddr_storage address = {};
  uint64_t client = 0;    ///< its connection requests carry this
  uint64_t key_to = 0;    ///< in the headers of messages to it
  uint64_t key_from = 0;  ///< in the headers of messages from it
};

struct Connection {
  std::unique_ptr<Worker> worker;
  std::vector<Member> members;   ///< ascending ranks
  uint32_t self = 0;             ///< this rank's place among them
  std::shared_ptr<Store> store;  ///< World's
  std::string abort_key;         ///< in the store
};

class UcxTransport final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> create(Connection connection);
  /// Tells the peers that this rank is through, and waits until they have what it sent, at most 5 s.
  ~UcxTransport() override;
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  std::string_view name() const override { return "ucx"; }
  bool shares(const void* /*data*/, size_t /*n_bytes*/) const override { return false; }
  bool writes_on_arrival() const override { return true; }
  void send(SendRequest& request) override;
  void recv(RecvRequest& request) override;
  Poll poll(SendRequest& request) override;
  Poll poll(RecvRequest& request) override;
  void release(RecvRequest& request) override;
  uint64_t arm() override { return n_events_; }
  void sleep(uint64_t token, Clock::duration at_most) override;
  const Error& failure() const override { return detector_.error(); }
  void abort(const Error& error) override { detector_.abort(error); }

 private:
  struct Header;
  struct SendState;
  struct RecvState;
  struct Arrival;
  struct Peer;

  UcxTransport(Connection connection, std::span<const int> ranks);
  Peer& peer_of(int rank);
  Peer* sender_of(const void* header, size_t n_header, Header& out);
  bool connect(Peer& peer);
  void suspect(Peer& peer, ucs_status_t status);
  void say_goodbye(Peer& peer);
  void acknowledge_goodbye(Peer& peer);
  bool awaits_acknowledgement() const;
  static void tell(ucp_ep_h endpoint, unsigned id, const Header& header);

  void take(Peer& peer, const Arrival& arrival);
  void match(Peer& peer, RecvRequest& request, const Arrival& arrival);
  void drop(const Arrival& arrival) const;
  void pull(Peer& peer, RecvRequest& request, void* descriptor);

  // NOLINTNEXTLINE(readability-function-size)
  static ucs_status_t on_message(void* self, const void* header, size_t n_header, void* data, size_t n_bytes,
                                 const ucp_am_recv_param_t* param);
  // NOLINTNEXTLINE(readability-function-size)
  static ucs_status_t on_goodbye(void* self, const void* header, size_t n_header, void* data, size_t n_bytes,
                                 const ucp_am_recv_param_t* param);
  // NOLINTNEXTLINE(readability-function-size)
  static ucs_status_t on_acknowledgement(void* self, const void* header, size_t n_header, void* data,
                                         size_t n_bytes, const ucp_am_recv_param_t* param);
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  static void on_accepted(void* self, uint64_t client, ucp_ep_h endpoint);
  static void on_sent(void* request, ucs_status_t status, void* self);
  static void on_pulled(void* request, ucs_status_t status, size_t n_bytes, void* self);

  bool failed();
  Poll pending(const Peer& peer, bool is_over);
  void close();

  Connection connection_;
  FailureDetector detector_;
  std::vector<Peer> peers_;               // by member; never resized
  std::vector<uint32_t> member_of_rank_;  // by world rank
  uint64_t n_events_ = 0;
  bool is_closed_ = false;
};

}  // namespace tern::ucx
