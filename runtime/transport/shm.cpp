// The mailbox core over memfds. The lowest member makes the region; everyone maps it, and everyone's heap
// (read-only), through /proc/<pid>/fd/<fd>. Device and inode numbers prove that the file found there is the
// one that was meant. Memory outside the heaps is read through the kernel (process_vm_readv) when a trial
// shows that all may: Yama, seccomp and user namespaces can forbid it.
#include "runtime/transport/shm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "runtime/base/log.h"
#include "runtime/transport/mailbox.h"
#include "runtime/transport/member_exchange.h"

namespace tern {
namespace {

/// A memfd of some process, so that another one can find and recognise it.
struct SharedFile {
  int fd = -1;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t n_bytes = 0;
};

/// What a member publishes.
struct Offer {
  int64_t pid = 0;
  SharedFile heap;
  SharedFile region;   ///< of the lowest member
  uint64_t trial = 0;  ///< where its process holds the inode number of its heap, for peers to try reading
};

/// What a member says when it has attached; anything else is why it could not.
constexpr std::string_view kMaps = "maps";
constexpr std::string_view kReads = "maps, and reads other memory";

std::string path_of(std::string_view process, int fd) {
  return fmt::format("/proc/{}/fd/{}", process, fd);
}

Result<SharedFile> describe(const std::string& path, int fd) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) {
    return error(Code::kIo, "cannot look at {}: {}", path, std::system_category().message(errno));
  }
  return SharedFile{fd, s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size)};
}

std::string to_text(const Offer& o) {
  const auto file = [](const SharedFile& f) {
    return fmt::format("{} {} {} {}", f.fd, f.device, f.inode, f.n_bytes);
  };
  return fmt::format("{} {} {} {}", o.pid, file(o.heap), file(o.region), o.trial);
}

Result<Offer> parse_offer(std::string_view text) {
  std::array<int64_t, 10> v{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (size_t i = 0; i < v.size(); ++i) {
    if (i > 0 && at < end && *at == ' ') ++at;
    const auto [next, failure] = std::from_chars(at, end, v[i]);
    if (failure != std::errc()) return error(Code::kCorrupt, "'{}' is not an offer of shared memory", text);
    at = next;
  }
  const auto file = [&](size_t i) {
    return SharedFile{static_cast<int>(v[i]), static_cast<uint64_t>(v[i + 1]),
                      static_cast<uint64_t>(v[i + 2]), static_cast<uint64_t>(v[i + 3])};
  };
  return Offer{v[0], file(1), file(5), static_cast<uint64_t>(v[9])};
}

Result<Mapping> map(int fd, size_t n_bytes, int protection) {
  void* base = ::mmap(nullptr, n_bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    return error(Code::kOutOfMemory, "cannot map {} bytes of shared memory: {}", n_bytes,
                 std::system_category().message(errno));
  }
  return Mapping({static_cast<std::byte*>(base), n_bytes});
}

Result<Mapping> map_file_of(int64_t pid, const SharedFile& file, int protection) {
  const std::string path = path_of(std::to_string(pid), file.fd);
  // Looked at before it is opened: a stranger's file may be one whose opening blocks or has effects.
  TERN_ASSIGN(const SharedFile found, describe(path, file.fd));
  if (found.device != file.device || found.inode != file.inode || found.n_bytes != file.n_bytes) {
    return error(Code::kIo, "{} is another file than the one offered", path);
  }
  const bool writes = (protection & PROT_WRITE) != 0;
  const Fd fd(::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  if (!fd) return error(Code::kIo, "cannot open {}: {}", path, std::system_category().message(errno));
  return map(fd.get(), file.n_bytes, protection);
}

Result<Fd> make_region_file(size_t n_bytes) {
  Fd fd(::memfd_create("tern-mailbox", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(n_bytes)) != 0) {
    return error(Code::kIo, "cannot make a memfd of {} bytes: {}", n_bytes,
                 std::system_category().message(errno));
  }
  return fd;
}

/// Maps the region and the other members' heaps.
Status attach(const World& world, std::span<const Offer> offers, mailbox::Connection& connection) {
  const Offer& lowest = offers.front();
  if (lowest.region.n_bytes != connection.layout.n_bytes()) {
    return error(Code::kUnsupported, "rank {} offers a region of {} bytes where {} are expected",
                 connection.ranks.front(), lowest.region.n_bytes, connection.layout.n_bytes());
  }
  TERN_ASSIGN(Mapping region, map_file_of(lowest.pid, lowest.region, PROT_READ | PROT_WRITE));
  connection.region = std::make_shared<const Mapping>(std::move(region));
  for (size_t i = 0; i < offers.size(); ++i) {
    if (i == connection.self) {
      connection.view_bases.push_back(reinterpret_cast<uintptr_t>(world.heap->base()));
      continue;
    }
    TERN_ASSIGN(Mapping heap, map_file_of(offers[i].pid, offers[i].heap, PROT_READ));
    connection.view_bases.push_back(reinterpret_cast<uintptr_t>(heap.get().data));
    connection.peer_heaps.push_back(std::move(heap));
    const int rank = connection.ranks[i];
    if (!connection.watch.add(rank, static_cast<pid_t>(offers[i].pid))) {
      log_debug("transport",
                "shm: the process of rank {} cannot be watched; its end is learnt from the store", rank);
    }
  }
  return {};
}

bool can_read_memory_of(const Offer& peer) {
  uint64_t found = 0;
  const iovec to{&found, sizeof(found)};
  const iovec from{reinterpret_cast<void*>(peer.trial), sizeof(found)};  // NOLINT(performance-no-int-to-ptr)
  const auto n = ::process_vm_readv(static_cast<pid_t>(peer.pid), &to, 1, &from, 1, 0);
  return n == sizeof(found) && found == peer.heap.inode;
}

/// Fills `mine`, which stays where it is until the others have tried to read it.
Result<std::vector<Offer>> exchange_offers(const Members& members, const Fd& region_file, Offer& mine) {
  mine.pid = ::getpid();
  TERN_ASSIGN(mine.heap, describe(path_of("self", members.world.heap->fd()), members.world.heap->fd()));
  if (region_file) {
    TERN_ASSIGN(mine.region, describe(path_of("self", region_file.get()), region_file.get()));
  }
  mine.trial = reinterpret_cast<uintptr_t>(&mine.heap.inode);
  TERN_ASSIGN(const std::vector<std::string> texts, exchange(members, "offer", to_text(mine)));
  std::vector<Offer> offers;
  for (const std::string& text : texts) {
    TERN_ASSIGN(Offer offer, parse_offer(text));
    offers.push_back(offer);
  }
  return offers;
}

}  // namespace

std::string shm_domain(const World& world, std::string* why_not) {
  std::array<char, 64> name_space{};
  if (::readlink("/proc/self/ns/pid", name_space.data(), name_space.size() - 1) <= 0) {
    *why_not = fmt::format("/proc/self/ns/pid cannot be read: {}", std::system_category().message(errno));
    return "";
  }
  return fmt::format("{} {}", world.host_id, name_space.data());
}

Result<std::unique_ptr<Transport>> connect_shm(const World& world, std::span<const int> ranks,
                                               std::string_view key) {
  const Members members{world, ranks, key, Deadline::after(world.config.bootstrap_timeout)};
  mailbox::Connection connection;
  connection.name = "shm";
  connection.layout = mailbox::Layout::of(static_cast<uint32_t>(ranks.size()), true);
  connection.ranks.assign(ranks.begin(), ranks.end());
  connection.self = static_cast<uint32_t>(members.self());
  connection.shared_first = reinterpret_cast<uintptr_t>(world.heap->base());
  connection.shared_bytes = world.heap->size();
  connection.store = world.store;
  connection.heap = world.heap;

  Fd region_file;  // open until all have mapped it
  if (world.rank == members.lowest()) {
    TERN_ASSIGN(region_file, make_region_file(connection.layout.n_bytes()));
  }
  Offer mine;
  TERN_ASSIGN(const std::vector<Offer> offers, exchange_offers(members, region_file, mine));
  const Status attached = attach(world, offers, connection);
  const bool reads =
      world.config.single_copy == 1 && std::all_of(offers.begin(), offers.end(), can_read_memory_of);
  TERN_ASSIGN(const std::vector<std::string> answers, exchange(members, "attached",
                                                               !attached.ok() ? attached.error().message
                                                               : reads        ? kReads
                                                                              : kMaps));
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == kMaps || answers[i] == kReads) continue;
    return error_at(ranks[i], Code::kUnsupported, "shm: rank {} cannot share memory: {}", ranks[i],
                    answers[i]);
  }
  if (std::count(answers.begin(), answers.end(), kReads) == std::ssize(answers)) {
    for (const Offer& offer : offers) connection.processes.push_back(static_cast<pid_t>(offer.pid));
  } else {
    log_debug("transport", "shm: ordinary memory is copied twice: {}",
              world.config.single_copy == 1 ? "the kernel does not let the ranks read each other's"
                                            : "TERN_SINGLE_COPY is 0");
  }
  return std::unique_ptr<Transport>(std::make_unique<mailbox::Mailbox>(std::move(connection)));
}

}  // namespace tern
