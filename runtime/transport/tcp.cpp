#include "runtime/transport/tcp.h"

#include "runtime/bootstrap/socket.h"
#include "runtime/transport/session.h"
#include "runtime/transport/tcp_transport.h"

namespace tern {

std::string tcp_domain(const World& /*world*/, std::string* /*why_not*/) {
  return "tcp";
}

Result<std::unique_ptr<Transport>> connect_tcp(const World& world, std::span<const int> members,
                                               std::string_view key) {
  TERN_ASSIGN(Fd listener, listen_on(world.address, 0));
  const Offer mine = {world.address, port_of(listener), random_secret()};
  TERN_ASSIGN(const Session session, open_session(world, members, key, mine));

  tcp::Connection connection;
  std::vector<AuthKey> keys;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] == world.rank) connection.self = static_cast<uint32_t>(i);
    const Offer& offer = session.offers[i];
    connection.members.push_back(
        {members[i], offer.address, offer.port, session.key(world.rank, members[i])});
    keys.push_back(session.key(members[i], world.rank));
  }
  connection.door = std::make_unique<tcp::Door>(std::move(listener), std::move(keys));
  connection.store = world.store;
  connection.abort_key = fmt::format("{}/abort", key);
  return tcp::TcpTransport::create(std::move(connection));
}

}  // namespace tern
