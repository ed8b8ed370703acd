#include "runtime/communicator/store_accuser.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/bootstrap/fields.h"

namespace tern {
namespace {

// Every rank that waits sees the mark within 20 ms and a request to the store; a quarter of the time that
// was waited already is not long to find the right rank.
constexpr Seconds kLongestGrace{0.5};

using Microseconds = std::chrono::duration<int64_t, std::micro>;

void append_time(std::string& bytes, Seconds time) {
  append_number(bytes, std::chrono::duration_cast<Microseconds>(time).count());
}

std::string pack(const Wait& wait) {
  std::string bytes;
  append_text(bytes, wait.call);
  append_number(bytes, static_cast<int32_t>(wait.rank));
  append_number(bytes, static_cast<int32_t>(wait.peer));
  append_time(bytes, wait.timeout);
  append_time(bytes, wait.in_call);
  return bytes;
}

Result<Wait> unpack(std::string_view bytes) {
  FieldReader reader(bytes);
  const auto call = reader.text();
  const auto rank = reader.number<int32_t>();
  const auto peer = reader.number<int32_t>();
  const auto timeout = reader.number<int64_t>();
  const auto in_call = reader.number<int64_t>();
  if (!in_call || !reader.at_end())
    return error(Code::kCorrupt, "the store does not hand out whole who waits for whom");
  return Wait{std::string(*call), *rank, *peer, Microseconds(*timeout), Microseconds(*in_call)};
}

}  // namespace

Error silent(const Wait& witness) {
  return error_at(witness.peer, Code::kTimeout, "{} on rank {}: rank {} did not take part within {:.3g} s",
                  witness.call, witness.rank, witness.peer, witness.timeout.count());
}

Error circle(std::span<const Wait> waits) {
  const auto by_time = [](const Wait& a, const Wait& b) { return a.in_call < b.in_call; };
  const auto [late, first] = std::minmax_element(waits.begin(), waits.end(), by_time);
  if (late->in_call < first->in_call / 2) {
    return error_at(late->rank, Code::kTimeout,
                    "{} on rank {}: rank {} did not take part within {:.3g} s; it came {:.3g} s late",
                    first->call, first->rank, late->rank, first->timeout.count(),
                    (first->in_call - late->in_call).count());
  }
  std::vector<int> ranks;
  for (const Wait& wait : waits) ranks.push_back(wait.rank);
  const Wait& last = waits.back();
  return error_at(last.peer, Code::kTimeout,
                  "{} on rank {}: ranks {} wait for each other in a circle, so that a message among them is "
                  "lost",
                  last.call, last.rank, fmt::join(ranks, ", "));
}

StoreAccuser::StoreAccuser(Store& store, std::string key)
    : store_(store), key_(std::move(key)), asked_(store_.watch(fmt::format("{}/asked", key_))) {}

std::string StoreAccuser::word_key(int rank) const {
  return fmt::format("{}/waits/{}", key_, rank);
}

void StoreAccuser::ask(const Wait& wait) {
  own_ = wait;
  since_ = Clock::now();
  grace_ = std::chrono::duration_cast<Clock::duration>(std::min(kLongestGrace, wait.timeout / 4));
  store_.post(word_key(wait.rank), pack(wait));
  store_.post(fmt::format("{}/asked", key_), "");
  peers_word_ = store_.watch(word_key(wait.peer));
  // Asked for last: once this has come back, so has what the peer had said before.
  own_word_ = store_.watch(word_key(wait.rank));
}

std::optional<Error> StoreAccuser::answer() {
  const auto waited = Clock::now() - since_;
  if (waited < grace_) return std::nullopt;
  if (!own_word_->is_set()) {
    return error_at(0, Code::kTimeout,
                    "{} on rank {}: rank {} did not take part within {:.3g} s, and rank 0, which hosts the "
                    "store, does not answer",
                    own_.call, own_.rank, own_.peer, own_.timeout.count());
  }
  if (!peers_word_->is_set()) return silent(own_);
  // The peer waits too. Whoever waits for the rank at fault is about to say so.
  if (waited < 2 * grace_) return std::nullopt;
  return follow();
}

Error StoreAccuser::follow() const {
  std::vector<Wait> waits = {own_};
  while (true) {
    const int next = waits.back().peer;
    const auto seen = std::find_if(waits.begin(), waits.end(), [&](const Wait& w) { return w.rank == next; });
    if (seen != waits.end()) return circle({seen, waits.end()});
    const auto word = store_.get(word_key(next), Deadline::after(grace_));
    if (!word && word.error().code == Code::kTimeout) return silent(waits.back());
    if (!word) return word.error();
    auto wait = unpack(*word);
    if (!wait) return wait.error();
    waits.push_back(std::move(*wait));
  }
}

}  // namespace tern
