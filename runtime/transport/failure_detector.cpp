#include "runtime/transport/failure_detector.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/bootstrap/frame.h"

namespace tern {
namespace {

/// Time for an abort or the store to say why a connection broke.
constexpr auto kConvictAfter = std::chrono::milliseconds(500);
constexpr Seconds kStoreAnswers{0.5};
constexpr auto kLookAgain = std::chrono::milliseconds(1);

}  // namespace

FailureDetector::FailureDetector(std::shared_ptr<Store> store, std::string abort_key,
                                 std::span<const int> ranks)
    : store_(std::move(store)),
      abort_key_(std::move(abort_key)),
      abort_(store_->watch(abort_key_)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (const int rank : ranks) fates_.push_back({.rank = rank, .why = {}, .since = {}});
}

void FailureDetector::suspect(size_t member, std::string why) {
  Fate& fate = fates_[member];
  if (fate.is_suspect || fate.has_left) return;
  log_debug("transport", "the connection to rank {} failed: {}", fate.rank, why);
  fate.is_suspect = true;
  fate.why = std::move(why);
  fate.since = Clock::now();
  ++n_suspects_;
}

void FailureDetector::look() {
  // Acquire pairs with the release in abort().
  if (has_local_abort_.load(std::memory_order_acquire)) [[unlikely]] {
    const std::lock_guard lock(local_abort_mutex_);
    return note(local_abort_);
  }
  if (abort_->is_set()) [[unlikely]]
    return note(unpack_error(abort_->value()));
  if (n_suspects_ > 0) [[unlikely]]
    convict_suspects();
  const auto lost = store_->failure();
  if (!lost || failed_) [[likely]]
    return;
  const bool is_member = std::any_of(fates_.begin(), fates_.end(), [&](const Fate& fate) {
    return fate.rank == lost->rank && !fate.has_left;
  });
  if (is_member || lost->rank < 0) note(*lost);
}

void FailureDetector::convict_suspects() {
  for (const Fate& fate : fates_) {
    if (!fate.is_suspect || fate.has_left || Clock::now() - fate.since < kConvictAfter) continue;
    return fail(
        error_at(fate.rank, Code::kPeerLost, "the connection to rank {} broke: {}", fate.rank, fate.why));
  }
}

void FailureDetector::note(const Error& error) {
  failed_ = true;
  error_ = error;
}

void FailureDetector::fail(const Error& error) {
  note(tell(error));
}

/// The abort that counts: another rank's may have come first, as the store's answer shows. Its host may be
/// what hangs, so that is waited for a moment only.
Error FailureDetector::tell(const Error& error) {
  store_->post(abort_key_, pack_error(error));
  const Deadline answered = Deadline::after(kStoreAnswers);
  while (!abort_->is_set() && !answered.passed()) std::this_thread::sleep_for(kLookAgain);
  return abort_->is_set() ? unpack_error(abort_->value()) : error;
}

void FailureDetector::abort(const Error& error) {
  {
    const std::lock_guard lock(local_abort_mutex_);
    if (has_local_abort_.load(std::memory_order_relaxed)) return;  // the mutex orders writers
    local_abort_ = error;
  }
  static_cast<void>(tell(error));
  has_local_abort_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
}

}  // namespace tern
