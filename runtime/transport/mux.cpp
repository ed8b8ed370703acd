#include "runtime/transport/mux.h"

#include <algorithm>

namespace tern {
namespace {

constexpr std::chrono::microseconds kShortestNap{50};
constexpr std::chrono::milliseconds kLongestNap{1};

}  // namespace

Mux::Mux(std::vector<std::unique_ptr<Transport>> parts, std::vector<size_t> part_of_rank)
    : part_of_rank_(std::move(part_of_rank)) {
  for (auto& transport : parts) {
    if (!name_.empty()) name_ += '+';
    name_ += transport->name();
    parts_.push_back({std::move(transport)});
  }
}

bool Mux::shares(const void* data, size_t n_bytes) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.transport->shares(data, n_bytes); });
}

bool Mux::writes_on_arrival() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.transport->writes_on_arrival(); });
}

void Mux::send(SendRequest& request) {
  part_of(request.peer).transport->send(request);
}

void Mux::recv(RecvRequest& request) {
  part_of(request.peer).transport->recv(request);
}

void Mux::release(RecvRequest& request) {
  part_of(request.peer).transport->release(request);
}

template <class Request>
Poll Mux::poll_part(Request& request) {
  if (failed_) [[unlikely]]
    return Poll::kFailed;
  Part& part = part_of(request.peer);
  const Poll poll = part.transport->poll(request);
  if (poll == Poll::kDone) {
    is_idle_ = false;
  } else if (poll == Poll::kPending) {
    part.is_awaited = true;
  } else {
    failed_ = true;
    failure_ = part.transport->failure();
    for (Part& other : parts_) {
      if (&other != &part) other.transport->abort(failure_);
    }
  }
  return poll;
}

uint64_t Mux::arm() {
  for (Part& part : parts_) {
    part.token = part.transport->arm();
    part.is_awaited = false;
  }
  return 0;  // the parts' tokens are kept here
}

void Mux::sleep(uint64_t /*token*/, Clock::duration at_most) {
  if (failed_) return;
  const auto awaited = [](const Part& part) { return part.is_awaited; };
  auto first = std::find_if(parts_.begin(), parts_.end(), awaited);
  if (first == parts_.end())
    first = parts_.begin();
  else if (std::none_of(first + 1, parts_.end(), awaited))
    return first->transport->sleep(first->token, at_most);

  const auto now = Clock::now();
  if (!is_idle_) idle_since_ = now;
  is_idle_ = true;
  const auto nap = std::clamp<Clock::duration>((now - idle_since_) / 8, kShortestNap, kLongestNap);
  first->transport->sleep(first->token, std::min(nap, at_most));
}

void Mux::abort(const Error& error) {
  for (Part& part : parts_) part.transport->abort(error);
}

}  // namespace tern
