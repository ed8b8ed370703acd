// The mailbox core over ordinary memory of the process. The lowest member maps the region and publishes the
// address of a shared owner of it; each member keeps a copy of that owner, and the last one to go unmaps the
// region.
#include "runtime/transport/inproc.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/transport/mailbox.h"
#include "runtime/transport/member_exchange.h"

namespace tern {
namespace {

using Region = std::shared_ptr<const Mapping>;

Result<Region> make_region(size_t n_bytes) {
  void* base =
      ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return error(Code::kOutOfMemory, "cannot map {} bytes for the inproc transport: {}", n_bytes,
                 std::system_category().message(errno));
  }
  return std::make_shared<const Mapping>(MappedRange{static_cast<std::byte*>(base), n_bytes});
}

/// The published text is the address of a Region in this process: `in_process` worlds share one address
/// space.
Result<Region> region_at(std::string_view text) {
  uintptr_t address = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), address, 16);
  if (failure != std::errc() || end != text.data() + text.size() || address == 0) {
    return error(Code::kCorrupt, "'{}' is not the address of an inproc region", text);
  }
  return *reinterpret_cast<const Region*>(address);  // NOLINT(performance-no-int-to-ptr): it came as text
}

/// A member that does not come in time may still come later and read the address: its target must be there
/// then. Reachable for ever, which leak checkers accept.
void keep_for_ever(std::unique_ptr<Region> published) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<Region>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(published));
}

}  // namespace

std::string inproc_domain(const World& world, std::string* why_not) {
  if (!world.in_process) {
    *why_not = "the ranks are processes, not threads of one process";
    return "";
  }
  return fmt::format("process {}", ::getpid());
}

Result<std::unique_ptr<Transport>> connect_inproc(const World& world, std::span<const int> ranks,
                                                  std::string_view key) {
  std::string why_not;
  if (inproc_domain(world, &why_not).empty()) return error(Code::kUnsupported, "inproc: {}", why_not);
  const Members members{world, ranks, key, Deadline::after(world.config.bootstrap_timeout)};
  const auto n = static_cast<uint32_t>(ranks.size());
  const auto layout = mailbox::Layout::of(n, false);

  std::unique_ptr<Region> published;
  std::string address;
  if (world.rank == members.lowest()) {
    TERN_ASSIGN(Region made, make_region(layout.n_bytes()));
    published = std::make_unique<Region>(std::move(made));
    address = fmt::format("{:x}", reinterpret_cast<uintptr_t>(published.get()));
  }
  const auto keep = [&](const Error& e) -> Error {
    if (published) keep_for_ever(std::move(published));
    return e;
  };
  const auto addresses = exchange(members, "region", address);
  if (!addresses.ok()) return keep(addresses.error());
  TERN_ASSIGN(Region region, region_at(addresses.value().front()));
  const auto attached = exchange(members, "attached", "");
  if (!attached.ok()) return keep(attached.error());

  mailbox::Connection connection;
  connection.name = "inproc";
  connection.layout = layout;
  connection.region = std::move(region);
  connection.ranks.assign(ranks.begin(), ranks.end());
  connection.self = static_cast<uint32_t>(members.self());
  connection.view_bases.assign(n, 0);
  connection.shared_first = 0;
  connection.shared_bytes = std::numeric_limits<size_t>::max();
  connection.store = world.store;
  connection.heap = world.heap;
  return std::unique_ptr<Transport>(std::make_unique<mailbox::Mailbox>(std::move(connection)));
}

}  // namespace tern
