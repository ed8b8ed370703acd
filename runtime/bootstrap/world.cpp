#include "runtime/bootstrap/world.h"

#include <numeric>

#include "runtime/base/log.h"
#include "runtime/bootstrap/fields.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/host_id.h"
#include "runtime/bootstrap/launch.h"
#include "runtime/bootstrap/memory_store.h"
#include "runtime/bootstrap/mpi.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/tcp_store.h"

namespace tern {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";

void place_on_host(World& world) {
  world.local_rank = 0;
  world.local_size = 0;
  for (int rank = 0; rank < world.size; ++rank) {
    if (world.host_ids[static_cast<size_t>(rank)] != world.host_id) continue;
    if (rank < world.rank) ++world.local_rank;
    ++world.local_size;
  }
}

Result<World> start_world(int rank, int size, const Config& config) {
  World world;
  world.rank = rank;
  world.size = size;
  world.config = config;
  world.host_id = config.host_id.empty() ? host_id_of_this_machine() : config.host_id;
  world.address = kLoopback;
  TERN_ASSIGN(world.heap, Heap::create(config.heap_bytes));
  return world;
}

Result<World> world_of_one(const Config& config) {
  TERN_ASSIGN(World world, start_world(0, 1, config));
  world.store = make_memory_stores(1).front();
  world.host_ids = {world.host_id};
  return world;
}

// From the first contact on: who is where.
Status meet(World& world, Deadline deadline) {
  auto host_ids = exchange(*world.store, world.rank, world.size,
                           {"world/host", world.host_id, deadline, "the rendezvous"});
  if (!host_ids) {
    world.store->fail(host_ids.error());  // so that the others hear it from the rank that knows first
    return host_ids.error();
  }
  world.host_ids = std::move(*host_ids);
  place_on_host(world);
  set_process_log_rank(world.rank);
  return {};
}

/// The error as other ranks hear it.
Error at_fault(Error error, int rank) {
  error.message = fmt::format("rank {}: {}", rank, error.message);
  error.rank = rank;
  return error;
}

/// What joining the store needs beyond TcpStore::Options.
struct Arrival {
  TcpStore::Options options;
  std::unique_ptr<StoreServer> server;
  std::unique_ptr<MpiSession> mpi;
};

/// Keeps MPI as long as the store.
struct StoreUnderMpi {
  std::unique_ptr<MpiSession> mpi;
  std::unique_ptr<TcpStore> store;
  ~StoreUnderMpi() {
    if (mpi && store->failure()) mpi->abandon();
    if (store) store->leave();
  }
};

Result<World> arrive(Arrival arrival, const Config& config) {
  TERN_ASSIGN(World world, start_world(arrival.options.rank, arrival.options.size, config));
  arrival.options.secret = arrival.options.secret.empty() ? config.secret : arrival.options.secret;
  world.config.secret = arrival.options.secret;  // also where MPI brought it
  arrival.options.deadline = Deadline::after(config.bootstrap_timeout);
  arrival.options.request_timeout = config.bootstrap_timeout;
  const auto owner = std::make_shared<StoreUnderMpi>();
  owner->mpi = std::move(arrival.mpi);
  auto store = TcpStore::join(arrival.options, std::move(arrival.server));
  if (!store) {
    if (owner->mpi) owner->mpi->abandon();
    return store.error();
  }
  owner->store = std::move(*store);
  world.store = std::shared_ptr<Store>(owner, owner->store.get());
  world.address = owner->store->local_address();
  if (!config.net_interface.empty()) {
    const auto address = interface_addresses(config.net_interface);
    // The others must not wait for this rank.
    if (!address) world.store->fail(at_fault(address.error(), world.rank));
    if (!address) return address.error();
    world.address = *address;
  }
  TERN_TRY(meet(world, arrival.options.deadline));
  return world;
}

struct Meeting {
  std::string addresses;
  int port = 0;
  std::string secret;
};

std::string pack_meeting(const Result<Meeting>& meeting) {
  std::string bytes;
  append_number(bytes, static_cast<uint8_t>(meeting.ok()));
  if (!meeting) return bytes + pack_error(meeting.error());
  append_number(bytes, static_cast<int32_t>(meeting->port));
  append_text(bytes, meeting->addresses);
  append_text(bytes, meeting->secret);
  return bytes;
}

Result<Meeting> unpack_meeting(std::string_view bytes) {
  FieldReader reader(bytes);
  const auto is_ok = reader.number<uint8_t>();
  if (!is_ok) return error(Code::kCorrupt, "rank 0's address did not come through MPI");
  if (*is_ok == 0) return unpack_error(bytes.substr(1));
  const auto port = reader.number<int32_t>();
  const auto addresses = reader.text();
  const auto secret = reader.text();
  if (!secret) return error(Code::kCorrupt, "rank 0's address did not come whole through MPI");
  return Meeting{std::string(*addresses), *port, std::string(*secret)};
}

// Rank 0 of an MPI job: a store at any free port, on the interface that config names or on all.
Result<Meeting> host_meeting(int size, const Config& config, std::unique_ptr<StoreServer>& server) {
  Meeting meeting;
  TERN_ASSIGN(meeting.addresses, interface_addresses(config.net_interface));
  meeting.secret = config.secret.empty() ? random_secret() : config.secret;
  StoreServer::Options options = {.size = size, .secret = meeting.secret};
  if (!config.net_interface.empty()) options.address = meeting.addresses;
  TERN_ASSIGN(server, StoreServer::create(options));
  meeting.port = server->port();
  return meeting;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

Result<World> World::from_environment(const Config& config) {
  TERN_ASSIGN(const Launch launch, detect_launch(environment));
  switch (launch.rendezvous) {
    case Rendezvous::kMpi:
      return from_mpi(config);
    case Rendezvous::kTcp:
      return from_tcp({launch.rank, launch.size, launch.address, launch.port}, config);
    case Rendezvous::kAlone:
      break;
  }
  return world_of_one(config);
}

Result<World> World::from_mpi(const Config& config) {
  Arrival arrival;
  TERN_ASSIGN(arrival.mpi, MpiSession::create());
  arrival.options.rank = arrival.mpi->rank();
  arrival.options.size = arrival.mpi->size();
  Result<Meeting> meeting = Meeting();
  if (arrival.options.rank == 0) {
    meeting = host_meeting(arrival.options.size, config, arrival.server);
    if (!meeting) meeting = at_fault(meeting.error(), 0);
  }
  TERN_ASSIGN(const std::string said, arrival.mpi->broadcast(pack_meeting(meeting)));
  TERN_ASSIGN(const Meeting agreed, unpack_meeting(said));
  arrival.options.addresses = split_at_commas(agreed.addresses);
  arrival.options.port = agreed.port;
  arrival.options.secret = agreed.secret;
  return arrive(std::move(arrival), config);
}

Result<World> World::from_tcp(const TcpPlace& place, const Config& config) {
  const auto& [rank, size, address, port] = place;
  if (size < 1 || rank < 0 || rank >= size) {
    return error(Code::kInvalidArgument, "rank {} of {} is not a place in a world", rank, size);
  }
  if (port < 1 || port > 65535) return error(Code::kInvalidArgument, "port {} is not from 1 to 65535", port);
  if (size == 1) return world_of_one(config);
  Arrival arrival;
  arrival.options = {.rank = rank, .size = size, .addresses = {address}, .port = port};
  if (rank == 0) {
    TERN_ASSIGN(arrival.server, StoreServer::create({size, config.secret, address, port}));
  }
  return arrive(std::move(arrival), config);
}

Result<std::vector<World>> World::in_process_world(int size, const Config& config) {
  if (size < 1) return error(Code::kInvalidArgument, "a world of {} ranks", size);
  const auto stores = make_memory_stores(size);
  std::vector<World> worlds;
  for (int rank = 0; rank < size; ++rank) {
    TERN_ASSIGN(World world, start_world(rank, size, config));
    world.in_process = true;
    world.store = stores[static_cast<size_t>(rank)];
    world.host_ids.assign(static_cast<size_t>(size), world.host_id);
    place_on_host(world);
    worlds.push_back(std::move(world));
  }
  return worlds;
}

std::vector<int> World::all_ranks() const {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace tern
