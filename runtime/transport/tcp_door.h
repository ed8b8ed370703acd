// Who may connect: a connection says first which member it comes from, and proves it by the session's key for
// that member. It is closed, and nothing else of it is read, when it does not.
#pragma once

#include <poll.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/handle.h"
#include "runtime/base/status.h"
#include "runtime/bootstrap/handshake.h"

namespace tern::tcp {

/// magic, member (32 bits), key.
inline constexpr size_t kGreetingBytes = kMagicBytes + sizeof(uint32_t) + sizeof(AuthKey);
std::string greeting(uint32_t member, const AuthKey& key);

class Door {
 public:
  struct Guest {
    size_t member = 0;
    Fd fd;
  };

  /// keys: by member, what its greeting must hold. Each opens once.
  Door(Fd listener, std::vector<AuthKey> keys);

  /// A member that has come and proved itself; nothing while there is none. Neither waits nor reads on.
  /// Errors: kIo when the system lets nobody in.
  Result<std::optional<Guest>> admit();
  /// Adds what to wait for.
  void add_to(std::vector<pollfd>& polled) const;

 private:
  struct Stranger {
    Fd fd;
    std::array<char, kGreetingBytes> said = {};
    size_t n_said = 0;
    bool is_refused = false;
  };

  Status let_in();
  bool listen_to(Stranger& stranger);
  std::optional<size_t> member_of(const Stranger& stranger) const;

  Fd listener_;
  std::vector<AuthKey> keys_;
  std::vector<bool> has_come_;  // by member
  std::vector<Stranger> strangers_;
};

}  // namespace tern::tcp
