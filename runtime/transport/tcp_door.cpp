#include "runtime/transport/tcp_door.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/bootstrap/fields.h"

namespace tern::tcp {
namespace {

constexpr std::string_view kMagic = "TERNTCP1";
static_assert(kMagic.size() == kMagicBytes);

/// Connections that have not greeted yet, beyond one per member; more, and the oldest goes.
constexpr size_t kMostStrangers = 64;

bool is_passing(int code) {
  return code == EAGAIN || code == EINTR || code == ECONNABORTED || code == EPROTO;
}

}  // namespace

std::string greeting(uint32_t member, const AuthKey& key) {
  std::string bytes(kMagic);
  append_number(bytes, member);
  bytes.append(reinterpret_cast<const char*>(key.data()), key.size());
  return bytes;
}

Door::Door(Fd listener, std::vector<AuthKey> keys)
    : listener_(std::move(listener)), keys_(std::move(keys)), has_come_(keys_.size(), false) {}

Result<std::optional<Door::Guest>> Door::admit() {
  TERN_TRY(let_in());
  std::optional<Guest> guest;
  for (Stranger& stranger : strangers_) {
    if (!listen_to(stranger)) continue;
    const auto member = member_of(stranger);
    if (member) {
      has_come_[*member] = true;
      guest = Guest{*member, std::move(stranger.fd)};
      break;
    }
    stranger.is_refused = true;
    log_debug("transport", "tcp: a connection that did not prove to be a member's is closed");
  }
  std::erase_if(strangers_, [](const Stranger& stranger) { return stranger.is_refused || !stranger.fd; });
  return guest;
}

Status Door::let_in() {
  while (true) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && errno == EAGAIN) return {};
    if (!fd && is_passing(errno)) continue;
    if (!fd) return error(Code::kIo, "a connection cannot be accepted: {}", system_text(errno));
    if (strangers_.size() >= kMostStrangers + keys_.size()) strangers_.erase(strangers_.begin());
    strangers_.push_back({.fd = std::move(fd)});
  }
}

/// True once the greeting is whole, or will never be.
bool Door::listen_to(Stranger& stranger) {
  while (stranger.n_said < kGreetingBytes) {
    const ssize_t n = ::recv(stranger.fd.get(), stranger.said.data() + stranger.n_said,
                             kGreetingBytes - stranger.n_said, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) return true;
    stranger.n_said += static_cast<size_t>(n);
  }
  return true;
}

std::optional<size_t> Door::member_of(const Stranger& stranger) const {
  const std::string_view said(stranger.said.data(), stranger.n_said);
  if (said.size() != kGreetingBytes || !said.starts_with(kMagic)) return std::nullopt;
  const size_t member = *FieldReader(said.substr(kMagicBytes)).number<uint32_t>();
  if (member >= keys_.size() || has_come_[member]) return std::nullopt;
  if (!is_key(keys_[member], said.substr(kMagicBytes + sizeof(uint32_t)))) return std::nullopt;
  return member;
}

void Door::add_to(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.get(), POLLIN, 0});
  for (const Stranger& stranger : strangers_) polled.push_back({stranger.fd.get(), POLLIN, 0});
}

}  // namespace tern::tcp
