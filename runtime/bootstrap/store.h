// The rendezvous: a small key-value store that all ranks of a world can reach, and how they learn of lost
// ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tern {

/// Whether somebody set a key. Looking costs one atomic load.
///
/// Threads: one sets, any look.
class Watch {
 public:
  bool is_set() const {
    // Acquire pairs with the release in set(): the value is whole when the flag is seen.
    return is_set_.load(std::memory_order_acquire);
  }
  const std::string& value() const { return value_; }  ///< once is_set()
  void set(std::string_view value) {
    value_ = value;
    is_set_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> is_set_ = false;
  std::string value_;
};

/// Keys are set once and never change. Used for set-up and for failures, never for data.
///
/// Threads: all calls may come from any thread.
class Store {
 public:
  virtual ~Store() = default;

  /// Errors: kPeerLost when the store's host is gone; kInvalidArgument when the key is set already to another
  /// value.
  virtual Status set(std::string_view key, std::string_view value) = 0;
  /// The same without waiting for the store's answer, so that a host that hangs holds nobody up; errors are
  /// not told. What this rank asks for afterwards is answered later.
  virtual void post(std::string_view key, std::string_view value) { static_cast<void>(set(key, value)); }
  /// Waits until the key is set; a deadline that has passed only looks.
  /// Errors: kTimeout; the world's failure, when the key is not set by then; kPeerLost when the store's host
  /// left.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;

  /// Learns of the key as soon as somebody sets it, without asking again. Shared: the store fills it in, the
  /// caller looks.
  virtual std::shared_ptr<const Watch> watch(std::string_view key) = 0;

  /// The first failure of the world, if any: a rank whose process ended without leave() or that called
  /// fail(). Costs one atomic load while there is none.
  virtual std::optional<Error> failure() const = 0;
  /// Tells every rank of the world. The first call of the world counts; later ones are ignored.
  virtual void fail(const Error& error) = 0;
  /// This rank ends in good order: its absence is no failure from now on.
  virtual void leave() = 0;
};

/// A key that the TCP store answers itself: a sentence about connections that did not prove the world's
/// secret, empty while there are none and once all ranks have joined. Other stores do not know it.
inline constexpr std::string_view kUnprovenKey = "store/unproven";

/// One rank's part of an exchange.
struct Exchange {
  std::string_view key;  ///< equal on all ranks; used once
  std::string_view value;
  Deadline deadline;
  std::string_view occasion = "the making of a communicator";  ///< to which a rank did not come, in errors
};

/// Every rank's value under the key, in rank order.
/// Errors: kTimeout naming the ranks that did not come; kPeerLost.
Result<std::vector<std::string>> exchange(Store& store, int rank, int n_ranks, const Exchange& part);

/// The same among some ranks of the world: `members` in ascending order, `rank` one of them.
Result<std::vector<std::string>> exchange_among(Store& store, int rank, std::span<const int> members,
                                                const Exchange& part);

}  // namespace tern
