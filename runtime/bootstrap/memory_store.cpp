#include "runtime/bootstrap/memory_store.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

namespace tern {
namespace {

struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string, std::less<>> values;
  std::multimap<std::string, std::shared_ptr<Watch>, std::less<>> watches;
  std::optional<Error> failure;  // written once, before has_failed
  std::atomic<bool> has_failed = false;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<Board> board) : board_(std::move(board)) {}

  Status set(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(board_->mutex);
    const auto [at, inserted] = board_->values.emplace(key, value);
    if (!inserted && at->second != value) {
      return error(Code::kInvalidArgument, "the key \"{}\" is set already, to another value", key);
    }
    board_->changed.notify_all();
    const auto [first, last] = board_->watches.equal_range(key);
    for (auto entry = first; entry != last; ++entry) entry->second->set(value);
    board_->watches.erase(first, last);
    return {};
  }

  std::shared_ptr<const Watch> watch(std::string_view key) override {
    const std::lock_guard lock(board_->mutex);
    auto watch = std::make_shared<Watch>();
    const auto at = board_->values.find(key);
    if (at != board_->values.end())
      watch->set(at->second);
    else
      board_->watches.emplace(key, watch);
    return watch;
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    std::unique_lock lock(board_->mutex);
    while (true) {
      const auto at = board_->values.find(key);
      if (at != board_->values.end()) return at->second;
      if (board_->failure) return *board_->failure;
      if (deadline.passed()) return error(Code::kTimeout, "nobody set the key \"{}\" in time", key);
      board_->changed.wait_for(lock, deadline.left());
    }
  }

  std::optional<Error> failure() const override {
    // Acquire pairs with the release in fail(): the error is whole when the flag is seen.
    if (!board_->has_failed.load(std::memory_order_acquire)) return std::nullopt;
    return board_->failure;
  }

  void fail(const Error& error) override {
    const std::lock_guard lock(board_->mutex);
    if (board_->failure) return;
    board_->failure = error;
    board_->has_failed.store(true, std::memory_order_release);
    board_->changed.notify_all();
  }

  // A thread cannot die without its process, so there is nothing to tell.
  void leave() override {}

 private:
  std::shared_ptr<Board> board_;  // shared by the ranks; the last to leave frees it
};

}  // namespace

std::vector<std::shared_ptr<Store>> make_memory_stores(int n_ranks) {
  const auto board = std::make_shared<Board>();
  std::vector<std::shared_ptr<Store>> stores;
  for (int rank = 0; rank < n_ranks; ++rank) stores.push_back(std::make_shared<MemoryStore>(board));
  return stores;
}

}  // namespace tern
