#include "runtime/transport/session.h"

#include <cstring>

#include "runtime/bootstrap/fields.h"

namespace tern {
namespace {

std::string pack(const Offer& offer) {
  std::string bytes;
  append_text(bytes, offer.address);
  append_number(bytes, static_cast<int32_t>(offer.port));
  append_text(bytes, offer.nonce);
  return bytes;
}

Result<Offer> unpack(std::string_view bytes) {
  FieldReader reader(bytes);
  const auto address = reader.text();
  const auto port = reader.number<int32_t>();
  const auto nonce = reader.text();
  if (!nonce) return error(Code::kCorrupt, "{} bytes are not the address of a listener", bytes.size());
  return Offer{std::string(*address), *port, std::string(*nonce)};
}

}  // namespace

AuthKey Session::key(int from, int to) const {
  return auth_key(fmt::format("{}|{} to {}", origin, from, to));
}

Result<Session> open_session(const World& world, std::span<const int> members, std::string_view key,
                             const Offer& mine) {
  TERN_ASSIGN(const auto texts, exchange_among(*world.store, world.rank, members,
                                               {fmt::format("{}/offer", key), pack(mine),
                                                Deadline::after(world.config.bootstrap_timeout)}));
  // The secret never travels: who only listens to what the store is told cannot make the keys.
  std::string origin = world.config.secret;
  Session session;
  for (const std::string& text : texts) {
    TERN_ASSIGN(Offer offer, unpack(text));
    session.offers.push_back(std::move(offer));
    origin += text;
  }
  const AuthKey digest = auth_key(origin);
  session.origin.assign(digest.begin(), digest.end());
  return session;
}

uint64_t number_of(const AuthKey& key) {
  uint64_t number = 0;
  std::memcpy(&number, key.data(), sizeof number);
  return number;
}

}  // namespace tern
