#include "trainer/data/prefetcher.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tern::trainer {

/// A ring of slots: batch i lives in slot i % n. `claimed_` batches have been taken by threads, `handed_out_`
/// by next().
struct Prefetcher::Queue {
  struct Slot {
    TokenBatch batch;
    bool ready = false;
  };

  Queue(const Dataset& data, const Shard& part, uint64_t begin, size_t n_slots)
      : dataset(data), shard(part), first_step_begin(begin), slots(n_slots) {}

  void fill(uint64_t batch_idx, TokenBatch& batch) const {
    const auto passes = static_cast<uint64_t>(shard.accumulation);
    const uint64_t step_begin = first_step_begin + batch_idx / passes * static_cast<uint64_t>(shard.train);
    const auto pass = static_cast<int64_t>(batch_idx % passes);
    dataset.train_samples(shard.first_sample(step_begin, pass), shard.micro, batch);
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      // The slot of the batch handed out last still belongs to the caller.
      room.wait(lock, [this] { return stopping || claimed + 1 < handed_out + slots.size(); });
      if (stopping) return;
      const uint64_t batch_idx = claimed++;
      Slot& slot = slots[batch_idx % slots.size()];
      slot.ready = false;
      lock.unlock();
      fill(batch_idx, slot.batch);
      lock.lock();
      slot.ready = true;
      filled.notify_all();
    }
  }

  const Dataset& dataset;
  const Shard shard;
  const uint64_t first_step_begin;
  std::mutex mutex;
  std::condition_variable room;
  std::condition_variable filled;
  std::vector<Slot> slots;
  uint64_t claimed = 0;
  uint64_t handed_out = 0;
  bool stopping = false;
  std::vector<std::thread> threads;
};

Prefetcher::Prefetcher(const Dataset& dataset, const Shard& shard, uint64_t first_step_begin, int n_threads) {
  const auto n_slots =
      static_cast<size_t>(n_threads) + 3;  // one in use, one ready, and one per thread to fill
  queue_ = std::make_unique<Queue>(dataset, shard, first_step_begin, n_slots);
  for (int i = 0; i < n_threads; ++i) queue_->threads.emplace_back([queue = queue_.get()] { queue->work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stopping = true;
  }
  queue_->room.notify_all();
  for (std::thread& thread : queue_->threads) thread.join();
}

const TokenBatch& Prefetcher::next() {
  std::unique_lock lock(queue_->mutex);
  Queue::Slot& slot = queue_->slots[queue_->handed_out % queue_->slots.size()];
  const uint64_t batch_idx = queue_->handed_out;
  queue_->filled.wait(lock, [&] { return queue_->claimed > batch_idx && slot.ready; });
  ++queue_->handed_out;
  queue_->room.notify_all();
  return slot.batch;
}

}  // namespace tern::trainer
