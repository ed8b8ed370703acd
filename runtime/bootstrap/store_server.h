// The side of the TCP store that rank 0 hosts.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "runtime/base/handle.h"
#include "runtime/base/status.h"

namespace tern {

/// Holds the keys, and one connection per rank: a connection that ends without a leave is a lost rank, which
/// the server tells all the others. One thread with poll(2); never waits for a single client.
///
/// Strangers: a connection is dropped when it has not proved the secret within 10 s, or sends a frame that
/// cannot be read; at most 2 * size + 64 unproven connections are kept (the oldest go).
class StoreServer {
 public:
  struct Options {
    int size = 1;
    std::string secret;
    std::string address = {};  ///< to listen on; "" for all interfaces
    int port = 0;              ///< 0: any
  };
  /// Errors: those of listen_on() (socket.h).
  static Result<std::unique_ptr<StoreServer>> create(const Options& options);
  /// Goes on serving until every rank that joined has left or is lost, at most 5 s: ranks that end a little
  /// later than rank 0 still find what they wait for.
  ~StoreServer();
  int port() const { return port_; }

 private:
  StoreServer() = default;
  Fd wake_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tern
