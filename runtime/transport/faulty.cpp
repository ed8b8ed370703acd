#include "runtime/transport/faulty.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "runtime/base/nearest.h"
#include "runtime/base/philox.h"

namespace tern {
namespace {

// ---- the list

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error bad_entry(std::string_view entry, std::string_view allowed) {
  return error(Code::kInvalidArgument, "TERN_FAULTS: \"{}\" is not {}", entry, allowed);
}

Status read_count(std::string_view entry, std::string_view text, int& target) {
  const auto value = number<int>(text);
  if (!value || *value < 0) return bad_entry(entry, "a count of at least 0");
  target = *value;
  return {};
}

// P or P:N, when there is a place for N.
Status read_chance(std::string_view entry, std::string_view text, double& chance, int* polls) {
  const size_t colon = text.find(':');
  const auto value = number<double>(text.substr(0, colon));
  if (!value || !(*value >= 0 && *value <= 1)) return bad_entry(entry, "a probability from 0 to 1");
  chance = *value;
  if (colon == std::string_view::npos) return {};
  if (polls == nullptr) return bad_entry(entry, "a probability alone");
  return read_count(entry, text.substr(colon + 1), *polls);
}

Status read_entry(std::string_view entry, FaultSpec& spec) {
  const size_t equals = entry.find('=');
  const std::string_view key = entry.substr(0, equals);
  const std::string_view text = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
  if (key == "seed") {
    const auto seed = number<uint64_t>(text);
    if (!seed) return bad_entry(entry, "a seed from 0 to 2^64 - 1");
    spec.seed = *seed;
    return {};
  }
  if (key == "rank") return read_count(entry, text, spec.rank);
  if (key == "delay") return read_chance(entry, text, spec.delay, &spec.delay_polls);
  if (key == "stall") return read_chance(entry, text, spec.stall, &spec.stall_polls);
  if (key == "drop") return read_chance(entry, text, spec.drop, nullptr);
  if (key == "cut") return read_count(entry, text, spec.cut);
  if (key == "hole") return read_count(entry, text, spec.hole);
  constexpr std::string_view kKeys[] = {"seed", "rank", "delay", "stall", "drop", "cut", "hole"};
  return error(Code::kInvalidArgument, "TERN_FAULTS has no \"{}\"; {}known: {}", key,
               did_you_mean(key, kKeys), fmt::join(kKeys, ", "));
}

// ---- the transport

class Faulty final : public Transport {
 public:
  Faulty(std::unique_ptr<Transport> inner, const FaultSpec& spec, int rank)
      : inner_(std::move(inner)),
        spec_(spec),
        is_active_(spec.rank < 0 || spec.rank == rank),
        random_(spec.seed, static_cast<uint64_t>(rank)),
        name_("faulty " + std::string(inner_->name())) {}

  std::string_view name() const override { return name_; }
  bool shares(const void* data, size_t n_bytes) const override { return inner_->shares(data, n_bytes); }
  bool writes_on_arrival() const override { return inner_->writes_on_arrival(); }

  void send(SendRequest& request) override {
    vanished_.erase(&request);
    if (failure_) return;
    ++n_sends_;
    if (is_active_ && (n_sends_ == spec_.cut || chance(spec_.drop))) return cut(request.peer);
    if (is_active_ && n_sends_ == spec_.hole) hole_ = request.peer;
    if (request.peer == hole_) {
      vanished_.insert(&request);
      return;
    }
    std::deque<Held>& queue = held_[request.peer];
    const int n_polls = delay();
    if (n_polls == 0 && queue.empty()) return inner_->send(request);
    queue.push_back({&request, n_polls});
    ++n_held_;
  }

  void recv(RecvRequest& request) override {
    late_.erase(&request);
    if (failure_) return;
    if (const int n_polls = delay(); n_polls > 0) late_[&request] = {n_polls, false};
    inner_->recv(request);
  }

  Poll poll(SendRequest& request) override {
    if (failure_) return Poll::kFailed;
    if (!moves()) return Poll::kPending;
    if (vanished_.contains(&request)) return Poll::kDone;
    const auto& queue = held_[request.peer];
    const bool is_held =
        std::any_of(queue.begin(), queue.end(), [&](const Held& held) { return held.request == &request; });
    return is_held ? Poll::kPending : noted(inner_->poll(request));
  }

  Poll poll(RecvRequest& request) override {
    if (failure_) return Poll::kFailed;
    if (!moves()) return Poll::kPending;
    const Poll poll = noted(inner_->poll(request));
    const auto late = late_.find(&request);
    if (poll != Poll::kDone || late == late_.end()) return poll;
    if (!std::exchange(late->second.has_come, true)) ++n_late_;
    if (--late->second.n_polls > 0) return Poll::kPending;
    --n_late_;
    late_.erase(late);
    return Poll::kDone;
  }

  void release(RecvRequest& request) override { inner_->release(request); }
  uint64_t arm() override {
    withheld_ = false;
    return inner_->arm();
  }

  void sleep(uint64_t token, Clock::duration at_most) override {
    // What we hold back is counted in polls: only an awake caller makes it move. And a poll that we answered
    // ourselves looked at nothing, so that it does not count as the look that must follow arm().
    if (n_held_ > 0 || n_late_ > 0 || withheld_ || failure_) return;
    inner_->sleep(token, at_most);
  }

  const Error& failure() const override { return failure_ ? *failure_ : inner_->failure(); }
  void abort(const Error& error) override { inner_->abort(error); }

 private:
  struct Held {
    SendRequest* request;
    int n_polls;
  };
  struct Late {
    int n_polls;
    bool has_come;  // only the delay keeps it
  };

  bool chance(double probability) {
    return probability > 0 && static_cast<double>(random_.uniform()) < probability;
  }

  // From the first failure on, what we hold back fails too.
  Poll noted(Poll poll) {
    if (poll == Poll::kFailed) failure_ = inner_->failure();
    return poll;
  }

  int delay() {
    if (!is_active_ || spec_.delay_polls == 0 || !chance(spec_.delay)) return 0;
    return 1 + static_cast<int>(random_.next() % static_cast<uint32_t>(spec_.delay_polls));
  }

  // One poll's worth of time; false while this rank stalls.
  bool moves() {
    if (n_stalled_ == 0 && is_active_ && chance(spec_.stall)) n_stalled_ = spec_.stall_polls;
    if (n_stalled_ > 0) {
      --n_stalled_;
      withheld_ = true;
      return false;
    }
    if (n_held_ == 0) return true;
    for (auto& [peer, queue] : held_) {
      if (!queue.empty()) --queue.front().n_polls;
      while (!queue.empty() && queue.front().n_polls <= 0) {
        inner_->send(*queue.front().request);
        queue.pop_front();
        --n_held_;
      }
    }
    return true;
  }

  void cut(int peer) {
    failure_ = error_at(peer, Code::kPeerLost, "the connection to rank {} was cut at send {} (TERN_FAULTS)",
                        peer, n_sends_);
    inner_->abort(*failure_);
  }

  std::unique_ptr<Transport> inner_;
  const FaultSpec spec_;
  const bool is_active_;
  Philox random_;
  std::string name_;
  std::map<int, std::deque<Held>> held_;  // by peer, in the order of the calls
  std::map<const RecvRequest*, Late> late_;
  std::set<const SendRequest*> vanished_;  // until the request is used again
  int n_held_ = 0;
  int n_late_ = 0;
  int n_stalled_ = 0;
  bool withheld_ = false;  // a poll since arm()
  int n_sends_ = 0;
  int hole_ = -1;
  std::optional<Error> failure_;
};

}  // namespace

Result<FaultSpec> parse_faults(std::string_view text) {
  FaultSpec spec;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    TERN_TRY(read_entry(text.substr(0, end), spec));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return spec;
}

std::unique_ptr<Transport> with_faults(std::unique_ptr<Transport> inner, const FaultSpec& spec, int rank) {
  return std::make_unique<Faulty>(std::move(inner), spec, rank);
}

}  // namespace tern
