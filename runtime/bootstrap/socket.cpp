#include "runtime/bootstrap/socket.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <vector>

namespace tern {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolve(const std::string& address, int port, bool to_listen) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = to_listen ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const std::string service = fmt::format("{}", port);
  const int rc = getaddrinfo(address.empty() ? nullptr : address.c_str(), service.c_str(), &wanted, &found);
  if (rc != 0) {
    return error(Code::kInvalidArgument, "the address \"{}\" cannot be resolved: {}", address,
                 gai_strerror(rc));
  }
  return AddressList(found, &freeaddrinfo);
}

// Waits for `events` on the socket. False when the deadline passed first.
bool wait_for(int fd, short events, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count();
    pollfd entry = {fd, events, 0};
    const int n = poll(&entry, 1, static_cast<int>(std::min<long long>(left, INT_MAX)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // the call that follows reports it
    if (deadline.passed()) return false;
  }
}

Result<Fd> listen_at(const addrinfo& where) {
  Fd fd(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return error(Code::kIo, "{}", system_text(errno));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), where.ai_addr, where.ai_addrlen) != 0) {
    return error(errno == EADDRNOTAVAIL ? Code::kNotFound : Code::kIo, "{}", system_text(errno));
  }
  if (listen(fd.get(), SOMAXCONN) != 0) return error(Code::kIo, "{}", system_text(errno));
  return fd;
}

Result<Fd> start_connecting_at(const addrinfo& where) {
  Fd fd(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return error(Code::kIo, "{}", system_text(errno));
  if (::connect(fd.get(), where.ai_addr, where.ai_addrlen) != 0 && errno != EINPROGRESS) {
    return error(Code::kIo, "{}", system_text(errno));
  }
  return fd;
}

Result<Fd> connect_at(const addrinfo& where, Deadline deadline) {
  TERN_ASSIGN(Fd fd, start_connecting_at(where));
  if (!wait_for(fd.get(), POLLOUT, deadline)) return error(Code::kTimeout, "no answer");
  int reason = 0;
  socklen_t n_reason = sizeof reason;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &reason, &n_reason);
  if (reason != 0) return error(Code::kIo, "{}", system_text(reason));
  tune_connection(fd.get());
  return fd;
}

std::string numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  }
  return text;
}

struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool is_loopback;
  bool is_ipv6;
};

std::vector<InterfaceAddress> addresses_of_this_machine() {
  std::vector<InterfaceAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    // Link-local IPv6 addresses mean nothing on another machine without its own interface number.
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr)) {
      continue;
    }
    found.push_back({entry->ifa_name, numeric(entry->ifa_addr), (entry->ifa_flags & IFF_LOOPBACK) != 0,
                     family == AF_INET6});
  }
  freeifaddrs(list);
  std::stable_sort(found.begin(), found.end(), [](const InterfaceAddress& a, const InterfaceAddress& b) {
    return std::pair(a.is_loopback, a.is_ipv6) < std::pair(b.is_loopback, b.is_ipv6);
  });
  return found;
}

}  // namespace

Result<Fd> listen_on(const std::string& address, int port) {
  TERN_ASSIGN(const AddressList list, resolve(address, port, true));
  Result<Fd> listener = listen_at(*list);
  if (!listener && listener.error().code == Code::kNotFound) {
    TERN_ASSIGN(const AddressList any, resolve("", port, true));
    listener = listen_at(*any);
  }
  if (listener) return listener;
  return error(Code::kIo, "cannot listen on {}:{}: {}", address, port, listener.error().message);
}

int port_of(const Fd& listener) {
  sockaddr_storage address = {};
  socklen_t n_bytes = sizeof address;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &n_bytes);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Result<Fd> connect_to(const std::string& address, int port, Deadline deadline) {
  TERN_ASSIGN(const AddressList list, resolve(address, port, false));
  Error last = error(Code::kIo, "no address");
  for (const addrinfo* where = list.get(); where != nullptr; where = where->ai_next) {
    Result<Fd> fd = connect_at(*where, deadline);
    if (fd) return fd;
    last = fd.error();
  }
  return error(last.code, "cannot connect to {}:{}: {}", address, port, last.message);
}

Result<Fd> start_connecting(const std::string& address, int port) {
  TERN_ASSIGN(const AddressList list, resolve(address, port, false));
  Result<Fd> fd = start_connecting_at(*list);
  if (!fd) return error(Code::kIo, "cannot connect to {}:{}: {}", address, port, fd.error().message);
  const int on = 1;
  setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void tune_connection(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 4);   // s of silence before the first probe
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);  // s between probes
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000);  // ms for data that nobody acknowledges
}

Status send_all(int fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      if (!wait_for(fd, POLLOUT, deadline))
        return error(Code::kTimeout, "{} bytes could not be sent", bytes.size());
    } else if (errno != EINTR) {
      return error(errno == EPIPE || errno == ECONNRESET ? Code::kPeerLost : Code::kIo, "{}",
                   system_text(errno));
    }
  }
  return {};
}

Status receive_all(int fd, char* bytes, size_t n_bytes, Deadline deadline) {
  while (n_bytes > 0) {
    const ssize_t n = recv(fd, bytes, n_bytes, 0);
    if (n > 0) {
      bytes += n;
      n_bytes -= static_cast<size_t>(n);
    } else if (n == 0) {
      return error(Code::kPeerLost, "the other end closed the connection");
    } else if (errno == EAGAIN) {
      if (!wait_for(fd, POLLIN, deadline)) return error(Code::kTimeout, "{} bytes did not come", n_bytes);
    } else if (errno != EINTR) {
      return error(errno == ECONNRESET ? Code::kPeerLost : Code::kIo, "{}", system_text(errno));
    }
  }
  return {};
}

std::string local_address(int fd) {
  sockaddr_storage address = {};
  socklen_t n_bytes = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &n_bytes);
  return numeric(reinterpret_cast<sockaddr*>(&address));
}

Result<std::string> interface_addresses(std::string_view interface) {
  std::vector<std::string> matching;
  std::vector<std::string> existing;
  for (const InterfaceAddress& entry : addresses_of_this_machine()) {
    existing.push_back(entry.interface);
    if (interface.empty() || interface == entry.interface) matching.push_back(entry.address);
  }
  if (matching.empty()) {
    const bool is_list = interface.find_first_of(", ;") != std::string_view::npos;
    existing.erase(std::unique(existing.begin(), existing.end()), existing.end());
    return error(
        Code::kNotFound,
        "TERN_NET_INTERFACE: no network interface \"{}\" with an address is up here{}; there are: {}",
        interface, is_list ? " (it is one name, not a list)" : "", fmt::join(existing, ", "));
  }
  if (interface.empty()) return fmt::format("{}", fmt::join(matching, ","));
  return matching.front();
}

}  // namespace tern
