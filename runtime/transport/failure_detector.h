// Why a transport between machines fails, and when: aborts travel through the store, lost ranks show in the
// store or as broken connections, whichever is first.
//
// A broken connection alone convicts a peer only after a moment: a rank that aborts breaks its connections
// too, and its reason is the better one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/handle.h"
#include "runtime/bootstrap/store.h"

namespace tern {

/// Threads: one, except abort() (any thread).
class FailureDetector {
 public:
  /// ranks: of the members, in the world. abort_key: of this communicator, in the store.
  FailureDetector(std::shared_ptr<Store> store, std::string abort_key, std::span<const int> ranks);

  /// Looks; once true it stays true, and error() says why. Costs a few atomic loads.
  bool failed() {
    if (!failed_) look();
    return failed_;
  }
  bool has_failed() const { return failed_; }  ///< as far as is known without looking
  const Error& error() const { return error_; }

  /// The connection to a member broke.
  void suspect(size_t member, std::string why);
  bool is_suspect(size_t member) const { return fates_[member].is_suspect; }
  /// A member ended in good order: neither its silence nor its end is a failure from now on.
  void leave(size_t member) { fates_[member].has_left = true; }
  bool has_left(size_t member) const { return fates_[member].has_left; }

  /// An error that this rank found: it stands for itself, and the others learn of it.
  void fail(const Error& error);
  /// Any thread. wake_fd() becomes readable.
  void abort(const Error& error);
  /// -1: the system gave none.
  int wake_fd() const { return wake_.get(); }

 private:
  struct Fate {
    int rank = -1;
    bool has_left = false;
    bool is_suspect = false;
    std::string why;
    Clock::time_point since;
  };

  void look();
  void convict_suspects();
  void note(const Error& error);
  Error tell(const Error& error);

  std::shared_ptr<Store> store_;  // World's
  std::string abort_key_;
  std::shared_ptr<const Watch> abort_;  // shared with the store
  std::vector<Fate> fates_;             // by member
  int n_suspects_ = 0;
  bool failed_ = false;
  Error error_;
  Fd wake_;
  std::atomic<bool> has_local_abort_ = false;
  std::mutex local_abort_mutex_;
  Error local_abort_;
};

}  // namespace tern
