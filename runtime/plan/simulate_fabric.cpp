#include "runtime/plan/simulate_fabric.h"

#include <algorithm>

namespace tern::simulation {
namespace {

// Shares and ends closer than this are one: alike flows differ by rounding only.
constexpr double kRounding = 1e-9;

}  // namespace

double Fabric::take(int message, double now) {
  const double bytes = flow(message).bytes;
  if (bytes <= 0 || links(message).empty()) return now;
  settle(now);
  Lane& lane = lanes_[static_cast<size_t>(flow(message).lane)];
  if (lane.n_active > 0 && lane.round != flow(message).round)
    lane.waiting.push_back(message);
  else
    start(message);
  return kNotYet;
}

void Fabric::start(int message) {
  Lane& lane = lanes_[static_cast<size_t>(flow(message).lane)];
  ++lane.n_active;
  lane.round = flow(message).round;
  state_[static_cast<size_t>(message)] = {flow(message).bytes, 0};
  active_.push_back(message);
  is_stale_ = true;
}

void Fabric::end(int message) {
  Lane& lane = lanes_[static_cast<size_t>(flow(message).lane)];
  if (--lane.n_active > 0 || lane.waiting.empty()) return;
  const int round = flow(lane.waiting.front()).round;
  while (!lane.waiting.empty() && flow(lane.waiting.front()).round == round) {
    start(lane.waiting.front());
    lane.waiting.pop_front();
  }
}

double Fabric::next_end(double now) {
  if (!is_stale_) return next_;
  is_stale_ = false;
  settle(now);
  share();
  next_ = kNever;
  for (const int m : active_) {
    const State& s = state_[static_cast<size_t>(m)];
    next_ = std::min(next_, now + s.left / s.rate);
  }
  return next_;
}

const std::vector<int>& Fabric::advance(double to) {
  settle(to);
  ended_.clear();
  std::erase_if(active_, [&](int m) {
    const bool ends = state_[static_cast<size_t>(m)].left <= kRounding * flow(m).bytes;
    if (ends) ended_.push_back(m);
    return ends;
  });
  TERN_CHECK(!ended_.empty());
  for (const int m : ended_) end(m);
  is_stale_ = true;
  next_ = kNever;
  return ended_;
}

void Fabric::settle(double now) {
  if (now <= settled_) return;
  for (const int m : active_) {
    State& s = state_[static_cast<size_t>(m)];
    s.left -= s.rate * (now - settled_);
  }
  settled_ = now;
}

// Progressive filling: the link with the least for each of its messages sets their rate; what they leave of
// other links is for the others.
void Fabric::share() {
  open_ = active_;
  while (!open_.empty()) freeze(open_links());
}

// Adds up what passes each link; returns the least share.
double Fabric::open_links() {
  if (open_.size() == active_.size())
    for (const int m : open_)
      for (const int l : links(m))
        left_[static_cast<size_t>(l)] = traffic_->bytes_per_s[static_cast<size_t>(l)];
  touched_.clear();
  for (const int m : open_) {
    for (const int l : links(m)) {
      const auto i = static_cast<size_t>(l);
      if (n_open_[i]++ == 0) {
        load_[i] = 0;
        touched_.push_back(l);
      }
      load_[i] += flow(m).n_total * traffic_->per_link[i];
    }
  }
  double least = kNever;
  for (const int l : touched_) {
    const auto i = static_cast<size_t>(l);
    least = std::min(least, left_[i] / load_[i]);
    n_open_[i] = 0;
  }
  return least;
}

// Gives `rate` to the messages that pass a link which has no more for them.
void Fabric::freeze(double rate) {
  const double limit = rate * (1 + kRounding);
  for (const int l : touched_) {
    const auto i = static_cast<size_t>(l);
    n_open_[i] = left_[i] / load_[i] <= limit ? 1 : 0;
  }
  std::erase_if(open_, [&](int m) {
    const auto is_full = [&](int l) { return n_open_[static_cast<size_t>(l)] == 1; };
    if (std::none_of(links(m).begin(), links(m).end(), is_full)) return false;
    state_[static_cast<size_t>(m)].rate = rate;
    for (const int l : links(m)) {
      const auto i = static_cast<size_t>(l);
      left_[i] = std::max(0.0, left_[i] - rate * flow(m).n_total * traffic_->per_link[i]);
    }
    return true;
  });
  for (const int l : touched_) n_open_[static_cast<size_t>(l)] = 0;
}

}  // namespace tern::simulation
