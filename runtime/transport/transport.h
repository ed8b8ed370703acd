// How bytes get from rank to rank: ordered messages per pair of ranks, with views instead of copies where
// memory is shared.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/bootstrap/world.h"

namespace tern {

/// Travels with every message, not looked at by transports: what the sender believes this message to be.
struct Envelope {
  uint64_t call = 0;   ///< packed sequence number, collective, dtype, op, codec, root (exec/signature.h)
  uint64_t count = 0;  ///< elements of the call
  bool operator==(const Envelope&) const = default;
};

enum class Poll : uint8_t {
  kPending,
  kDone,
  kFailed,  ///< Transport::failure() says why
};

/// A send under way. The caller owns it and keeps it in place until poll() says done; `data` is the
/// transport's until then.
struct SendRequest {
  int peer = -1;
  const void* data = nullptr;
  size_t n_bytes = 0;
  Envelope envelope;
  /// The receiver only puts the bytes in their place, and does not compute with them: the transport may copy
  /// them there at once, or in pieces, one taken while the next is on its way.
  bool lands = false;
  std::array<uint64_t, 6> state = {};  ///< the transport's own
};

/// A receive under way. When done, `data` points at the payload: at `into`, or at memory the transport or the
/// sender owns (a view), valid until release().
struct RecvRequest {
  int peer = -1;
  /// Where to put the payload if the transport must put it somewhere; capacity n_bytes. May be null only
  /// where the payload is sure to come as a view: at most 4 KiB between ranks that share memory.
  void* into = nullptr;
  /// The size expected. A message of another size is dropped: the request is done with `data` null and the
  /// message's size here, and the caller compares envelopes to say who called what.
  size_t n_bytes = 0;
  const void* data = nullptr;
  Envelope envelope;  ///< the sender's, when done
  std::array<uint64_t, 6> state = {};
};

/// Connected ranks of one communicator. Messages from one rank to another arrive in the order sent; receives
/// match in the order posted. Zero-byte messages are messages.
///
/// Threads: one thread at a time, except abort() (any thread).
/// Failures: a lost peer or an abort makes every poll() return kFailed from then on;
///           failure() then holds the error with the rank at fault.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  /// True when a send from this memory is read in place by the peer (no copy on the sender's side).
  virtual bool shares(const void* data, size_t n_bytes) const = 0;

  /// True when `into` may be written as soon as recv() was called; false when nothing is written before
  /// poll() says done (a view is given, or the copy is made by poll()).
  virtual bool writes_on_arrival() const = 0;

  /// Starts a send; the transport copies small payloads at once (then the first poll() says done).
  virtual void send(SendRequest& request) = 0;
  /// Starts a receive.
  virtual void recv(RecvRequest& request) = 0;
  /// Progresses and tells. Cheap enough to spin on. A request that is done stays done.
  virtual Poll poll(SendRequest& request) = 0;
  virtual Poll poll(RecvRequest& request) = 0;
  /// Ends the use of a done receive's view; the sender's poll() says done after that.
  virtual void release(RecvRequest& request) = 0;

  /// For sleeping without a lost wake-up: token = arm(); poll again; sleep(token, ...).
  virtual uint64_t arm() = 0;
  /// Sleeps until something arrived or completed since arm(), or at most so long. Also looks for lost peers.
  virtual void sleep(uint64_t token, Clock::duration at_most) = 0;

  virtual const Error& failure() const = 0;
  /// Makes this and every connected rank's polls fail with the error, wakes sleepers. Any thread.
  virtual void abort(const Error& error) = 0;
};

/// A transport row: `domain()` is equal on ranks that can connect by it.
struct TransportInfo {
  std::string_view name;
  std::string_view summary;
  /// "" when it cannot be used in this process (the reason in *why_not).
  std::string (*domain)(const World& world, std::string* why_not);
  /// Connects the ranks `members` (world ranks, ascending, with this rank among them) under a key of its own
  /// in the store. Request::peer is a world rank. Collective over the members.
  Result<std::unique_ptr<Transport>> (*connect)(const World& world, std::span<const int> members,
                                                std::string_view key);
  /// Ranks of one machine talk through the network stack too.
  bool is_network = false;
  /// Why another row is better here, though this one can be used: auto passes it over then. "": it is not so.
  std::string (*drawback)() = nullptr;
};

std::span<const TransportInfo> transports();
Result<const TransportInfo*> find_transport(std::string_view name);
/// True for the name of a row with is_network; false for any other text.
bool is_network(std::string_view name);

/// Connects ranks of the world (`members`, ascending, this rank among them): by the one transport that config
/// names, or (auto) shared memory inside hosts and between them UCX where there is RDMA, else TCP, behind one
/// Transport. TERN_FAULTS wraps it in `faulty`. key: unique per communicator. Collective over the members.
/// Errors: kUnsupported saying which transport cannot be used and why; kTimeout, kPeerLost.
Result<std::unique_ptr<Transport>> connect(const World& world, std::span<const int> members,
                                           std::string_view key);

}  // namespace tern
