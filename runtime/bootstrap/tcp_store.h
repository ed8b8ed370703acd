// A rank's connection to the store that rank 0 hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/store.h"
#include "runtime/bootstrap/store_server.h"

namespace tern {

/// Threads: as Store. One reader thread per store.
class TcpStore : public Store {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::vector<std::string> addresses;  ///< of rank 0; tried in turn, again and again until the deadline
    int port = 0;
    std::string secret = {};
    Deadline deadline = Deadline();  ///< for joining
    Seconds request_timeout{60};     ///< for the answer to a request that does not wait for another rank
  };
  /// `server`: on rank 0, the one that the others join; ends with this store.
  /// Errors: kTimeout (nothing listens there), kInvalidArgument (another secret, another size, the rank is
  /// taken, what listens there is not Tern).
  static Result<std::unique_ptr<TcpStore>> join(const Options& options, std::unique_ptr<StoreServer> server);
  /// This rank's numeric address on its connection.
  virtual std::string local_address() const = 0;
};

}  // namespace tern
