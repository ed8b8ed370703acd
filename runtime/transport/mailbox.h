// The transport core of ranks that share memory: messages through rings, payloads in place where the peer can
// read them.
//
// A message costs the receiver one cache miss on the slot's turn word, and the sender none in the common
// case. Payloads:
//   up to 96 bytes          in the slot
//   up to 4 KiB             copied by the sender to a small staging slot
//   from readable memory    not copied at all: the receiver gets a view; the send is done when it is released
//   other memory            copied by the sender to a large staging slot, of which the receiver gets a view;
//                           larger messages go in pieces that poll() copies to RecvRequest::into
// Messages that only land there (SendRequest::lands) come from other memory by one copy where the kernel lets
// ranks read each other's memory (from 8 KiB on; a system call of the receiver's), else in pieces from 64 KiB
// on. Messages that are computed with do not: there the copy to a staging slot, which stays in a cache, was
// the faster one with 4 ranks on 2 cores (bench/compare --ranks 4 --collectives all_reduce reduce_scatter).
//
// Messages, views and staging slots bound each other: at most 16 messages per pair may be under way or
// unreleased; further sends wait in order. Nothing is allocated, locked or asked of the system between
// connect and sleep, but for those copies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/handle.h"
#include "runtime/transport/bell.h"
#include "runtime/transport/fault_board.h"
#include "runtime/transport/mailbox_layout.h"
#include "runtime/transport/peer_watch.h"
#include "runtime/transport/staging_pool.h"
#include "runtime/transport/transport.h"

namespace tern::mailbox {

/// What the connect functions find out. Members are numbered by their place in `ranks`.
struct Connection {
  std::string_view name;
  Layout layout;
  /// Shared: the in-process ranks own one map together; over shm each rank is its map's only owner.
  std::shared_ptr<const Mapping> region;
  std::vector<int> ranks;  ///< world ranks, ascending
  uint32_t self = 0;
  /// Kind::kView locations of member i are relative to this address (in this process).
  std::vector<uintptr_t> view_bases;
  /// Addresses of this rank that all members can read: [first, first + n_bytes).
  uintptr_t shared_first = 0;
  size_t shared_bytes = 0;
  PeerWatch watch;
  std::shared_ptr<Store> store;     ///< World's
  std::shared_ptr<Heap> heap;       ///< World's; kept while views of it may be read
  std::vector<Mapping> peer_heaps;  ///< what view_bases point into
  /// By member: the processes whose memory this one may read, when each may read every other's; else empty.
  std::vector<pid_t> processes;
};

class Mailbox final : public Transport {
 public:
  explicit Mailbox(Connection connection);
  /// Tells the peers that this rank is through; what they still wait for from it fails.
  ~Mailbox() override;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  std::string_view name() const override { return connection_.name; }
  bool shares(const void* data, size_t n_bytes) const override;
  bool writes_on_arrival() const override { return false; }
  void send(SendRequest& request) override;
  void recv(RecvRequest& request) override;
  Poll poll(SendRequest& request) override;
  Poll poll(RecvRequest& request) override;
  void release(RecvRequest& request) override;
  uint64_t arm() override;
  void sleep(uint64_t token, Clock::duration at_most) override;
  const Error& failure() const override { return failure_; }
  void abort(const Error& error) override;

 private:
  struct SendState;
  struct RecvState;

  struct Peer {
    int rank = -1;
    uint32_t member = 0;
    bool closed = false;
    Ring* out = nullptr;
    Ring* in = nullptr;
    Bell* bell = nullptr;
    uint32_t next_out = 1;             ///< number of the next message to it
    uint32_t free_until = kRingSlots;  ///< messages up to this number have a free slot, as far as known
    uint32_t next_in = 1;
    uintptr_t view_base = 0;
    // Requests that wait, oldest first, linked through their state.
    SendRequest* first_send = nullptr;
    SendRequest* last_send = nullptr;
    RecvRequest* first_recv = nullptr;
    RecvRequest* last_recv = nullptr;
  };

  Peer& peer_of(int rank) { return peers_[member_of_rank_[static_cast<size_t>(rank)]]; }

  Slot* free_slot(Peer& peer);
  void hand_over(Peer& peer, Slot& slot, Kind kind, const SendRequest& request);
  bool post(Peer& peer, SendRequest& request, SendState& state);
  bool post_inline(Peer& peer, SendRequest& request, SendState& state);
  bool post_small(Peer& peer, SendRequest& request, SendState& state);
  bool post_lent(Peer& peer, SendRequest& request, SendState& state);
  bool post_staged(Peer& peer, SendRequest& request, SendState& state);
  void push_sends(Peer& peer);
  void pull_receives(Peer& peer);
  bool accept(Peer& peer, RecvRequest& request, RecvState& state);
  bool accept_piece(Peer& peer, RecvRequest& request, RecvState& state);
  void read_remote(const Peer& peer, const Slot& slot, const RecvRequest& request);
  const std::byte* payload(const Peer& peer, const Slot& slot) const;
  void acknowledge(Peer& peer, uint32_t number);
  void made_progress();

  bool failed();
  void note(const Error& error);
  void fail(const Error& error);
  Poll pending(const Peer& peer);
  void look_for_lost_peers();

  Connection connection_;
  std::byte* region_;
  Fault* fault_;
  Bell* bell_;
  std::vector<Peer> peers_;               // by member
  std::vector<uint32_t> member_of_rank_;  // by world rank
  StagingPool small_;
  StagingPool large_;
  bool armed_ = false;
  bool failed_ = false;
  Error failure_;
  Clock::time_point looked_at_;
};

}  // namespace tern::mailbox
