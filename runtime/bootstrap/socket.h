// TCP sockets with deadlines.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/handle.h"
#include "runtime/base/status.h"

namespace tern {

/// A listening, non-blocking socket. address: a name or number of this machine; when it belongs to no
/// interface here (a name behind address translation, or ""), it listens on all of them. port 0: any. Errors:
/// kIo with address, port and reason; kInvalidArgument when the name cannot be resolved.
Result<Fd> listen_on(const std::string& address, int port);
int port_of(const Fd& listener);

/// One try to connect, non-blocking afterwards, with keep-alive so that a cut link is noticed within about 10
/// s. Errors: kTimeout, kIo (refused, unreachable), kInvalidArgument (the name cannot be resolved).
Result<Fd> connect_to(const std::string& address, int port, Deadline deadline);
/// The same without waiting for the answer: writing gives EAGAIN until there is one, then its error if it was
/// no. address: numeric. No keep-alive. Errors: kIo, kInvalidArgument.
Result<Fd> start_connecting(const std::string& address, int port);
/// Keep-alive and no delay, for an accepted connection.
void tune_connection(int fd);

/// Writes or reads all bytes. Errors: kTimeout; kIo with the reason; kPeerLost when the other end closed.
Status send_all(int fd, std::string_view bytes, Deadline deadline);
Status receive_all(int fd, char* bytes, size_t n_bytes, Deadline deadline);

/// This end's numeric address of a connection.
std::string local_address(int fd);
/// The first address (IPv4 before IPv6) of an interface of this machine; without a name, of all interfaces
/// that are up, comma separated, loopback last. Errors: kNotFound listing the interfaces that exist.
Result<std::string> interface_addresses(std::string_view interface);

}  // namespace tern
