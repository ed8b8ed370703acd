// A store in memory that forked processes and threads share: worlds for tests without sockets.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/world.h"
#include "runtime/transport/fault_board.h"

namespace tern {

/// Holds up to 512 short entries. Lives in a MAP_SHARED mapping: make it before forking.
class SharedStore final : public Store {
 public:
  static std::shared_ptr<SharedStore> create();

  Status set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  /// Shows nothing: transports over shared memory have a place of their own for aborts.
  std::shared_ptr<const Watch> watch(std::string_view /*key*/) override { return std::make_shared<Watch>(); }
  std::optional<Error> failure() const override { return mailbox::read(board_); }
  void fail(const Error& error) override { mailbox::publish(board_, error); }
  void leave() override {}

 private:
  struct Entry {
    std::atomic<bool> filled;
    char key[96];
    char value[256];
  };
  Entry* find(std::string_view key);

  std::atomic<uint32_t> n_entries_;  // claimed; an entry counts once it is filled
  mailbox::Fault board_;
  Entry entries_[512];
};

/// Worlds of `n` ranks with a heap each. In one process unless told otherwise.
std::vector<World> worlds_over(const std::shared_ptr<Store>& store, int n, bool in_process = true);

}  // namespace tern
