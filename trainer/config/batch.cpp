#include "trainer/config/batch.h"

#include <string>

namespace tern::trainer {
namespace {

/// What train_batch_size must be, in the words of the keys that were given.
Error does_not_hold(const BatchRequest& request, int world_size) {
  std::string factors;
  int64_t unit = world_size;
  const auto factor = [&](std::string_view key, const std::optional<int64_t>& value) {
    if (!value) return;
    factors += fmt::format("{} {} x ", key, *value);
    unit *= *value;
  };
  factor("train_micro_batch_size_per_gpu", request.micro);
  factor("gradient_accumulation_steps", request.accumulation);
  factors += fmt::format("{} ranks", world_size);
  if (request.micro && request.accumulation) {
    return error(Code::kInvalidArgument,
                 "the batch equation does not hold: {} makes {}, but deepspeed.train_batch_size is {}",
                 factors, unit, *request.train);
  }
  const int64_t below = *request.train / unit * unit;
  const std::string nearest =
      below > 0 ? fmt::format("{} or {}", below, below + unit) : fmt::format("{}", unit);
  return error(Code::kInvalidArgument,
               "the batch equation does not hold: deepspeed.train_batch_size {} is no multiple of {}{}; the "
               "nearest that is: {}",
               *request.train, factors,
               factors.find(" x ") == std::string::npos ? "" : fmt::format(" = {}", unit), nearest);
}

}  // namespace

Result<Batch> solve_batch(const BatchRequest& request, int world_size) {
  if (!request.train && !request.micro) {
    return error(Code::kInvalidArgument,
                 "the batch size is not known: give deepspeed.train_batch_size or "
                 "deepspeed.train_micro_batch_size_per_gpu");
  }
  Batch batch;
  if (!request.train) {
    batch.micro = *request.micro;
    batch.accumulation = request.accumulation.value_or(1);
    batch.train = batch.micro * batch.accumulation * world_size;
    return batch;
  }
  batch.train = *request.train;
  if (request.micro) {
    batch.micro = *request.micro;
    batch.accumulation = request.accumulation.value_or(batch.train / batch.micro / world_size);
  } else {
    batch.accumulation = request.accumulation.value_or(1);
    batch.micro = batch.train / world_size / batch.accumulation;
  }
  if (batch.micro * batch.accumulation * world_size != batch.train) return does_not_hold(request, world_size);
  return batch;
}

}  // namespace tern::trainer
