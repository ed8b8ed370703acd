// A port that nobody listens on just now.
#pragma once

#include "runtime/bootstrap/socket.h"

namespace tern {

inline int free_port() {
  return port_of(listen_on("127.0.0.1", 0).value());
}

}  // namespace tern
