#include "runtime/transport/ucx.h"

#include <charconv>
#include <cstring>

#include "runtime/bootstrap/fields.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/transport/ucx_transport.h"

namespace tern {
namespace {

/// What a member publishes: where it listens, and its share of the session's randomness.
struct Offer {
  std::string address;
  int port = 0;
  std::string nonce;
};

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
  if (!nonce) return error(Code::kCorrupt, "{} bytes are not the address of a ucx listener", bytes.size());
  return Offer{std::string(*address), *port, std::string(*nonce)};
}

// 64 bits that only who knows the session's secret can tell.
uint64_t derive(std::string_view session, std::string_view purpose) {
  const AuthKey key = auth_key(fmt::format("{}|{}", session, purpose));
  uint64_t number = 0;
  std::memcpy(&number, key.data(), sizeof number);
  return number;
}

Result<std::vector<std::string>> exchange_offers(const World& world, std::span<const int> members,
                                                 std::string_view key, const Offer& mine) {
  return exchange_among(
      *world.store, world.rank, members,
      {fmt::format("{}/offer", key), pack(mine), Deadline::after(world.config.bootstrap_timeout)});
}

}  // namespace

std::string ucx_domain(const World& /*world*/, std::string* /*why_not*/) {
  return "ucx";
}

Result<std::unique_ptr<Transport>> connect_ucx(const World& world, std::span<const int> members,
                                               std::string_view key) {
  // The number that connection requests carry is fixed when the worker is made, before the session's secret
  // is known: it is random by itself and published like the address.
  Offer mine = {.address = world.address, .port = 0, .nonce = random_secret()};
  const auto client_of = [](const Offer& offer) { return derive(offer.nonce, "client"); };
  TERN_ASSIGN(auto worker, ucx::Worker::create({world.address, client_of(mine)}));
  mine.port = worker->port();
  TERN_ASSIGN(const auto texts, exchange_offers(world, members, key, mine));

  std::string session;
  for (const std::string& text : texts) session += text;
  ucx::Connection connection;
  for (size_t i = 0; i < members.size(); ++i) {
    TERN_ASSIGN(const Offer offer, unpack(texts[i]));
    ucx::Member member;
    member.rank = members[i];
    TERN_ASSIGN(member.address, ucx::socket_address(offer.address, offer.port));
    member.client = client_of(offer);
    member.key_to = derive(session, fmt::format("{} to {}", world.rank, member.rank));
    member.key_from = derive(session, fmt::format("{} to {}", member.rank, world.rank));
    if (member.rank == world.rank) connection.self = static_cast<uint32_t>(i);
    connection.members.push_back(member);
  }
  connection.worker = std::move(worker);
  connection.store = world.store;
  connection.abort_key = fmt::format("{}/abort", key);
  return ucx::UcxTransport::create(std::move(connection));
}

}  // namespace tern
