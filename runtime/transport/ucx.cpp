#include "runtime/transport/ucx.h"

#include "runtime/transport/session.h"
#include "runtime/transport/ucx_transport.h"

namespace tern {

std::string ucx_domain(const World& /*world*/, std::string* /*why_not*/) {
  return "ucx";
}

std::string ucx_drawback() {
  return ucx::has_rdma_device() ? "" : "there is no RDMA device";
}

Result<std::unique_ptr<Transport>> connect_ucx(const World& world, std::span<const int> members,
                                               std::string_view key) {
  // The number that connection requests carry is fixed when the worker is made, before the session's secret
  // is known: it is random by itself and published like the address.
  Offer mine = {.address = world.address, .port = 0, .nonce = random_secret()};
  const auto client_of = [](const Offer& offer) { return number_of(auth_key(offer.nonce)); };
  TERN_ASSIGN(auto worker, ucx::Worker::create({world.address, client_of(mine)}));
  mine.port = worker->port();
  TERN_ASSIGN(const Session session, open_session(world, members, key, mine));

  ucx::Connection connection;
  for (size_t i = 0; i < members.size(); ++i) {
    const Offer& offer = session.offers[i];
    ucx::Member member;
    member.rank = members[i];
    TERN_ASSIGN(member.address, ucx::socket_address(offer.address, offer.port));
    member.client = client_of(offer);
    member.key_to = number_of(session.key(world.rank, member.rank));
    member.key_from = number_of(session.key(member.rank, world.rank));
    if (member.rank == world.rank) connection.self = static_cast<uint32_t>(i);
    connection.members.push_back(member);
  }
  connection.worker = std::move(worker);
  connection.store = world.store;
  connection.abort_key = fmt::format("{}/abort", key);
  return ucx::UcxTransport::create(std::move(connection));
}

}  // namespace tern
