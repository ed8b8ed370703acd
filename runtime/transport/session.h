// How the members of a communicator between machines find each other: addresses to connect to, and keys that
// nobody else knows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/world.h"

namespace tern {

/// What a member publishes: where it listens, and its share of the session's randomness.
struct Offer {
  std::string address;
  int port = 0;
  std::string nonce;
};

struct Session {
  std::vector<Offer> offers;  ///< by member
  std::string origin;         ///< what its keys are made from

  /// For what the rank `from` says to the rank `to`.
  AuthKey key(int from, int to) const;
};

/// Collective over the members. Errors: kTimeout, kPeerLost naming the rank that did not come; kCorrupt.
Result<Session> open_session(const World& world, std::span<const int> members, std::string_view key,
                             const Offer& mine);

/// 64 bits that only who knows the key can tell.
uint64_t number_of(const AuthKey& key);

}  // namespace tern
