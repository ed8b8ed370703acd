#include "trainer/config/batch.h"

#include <string>

namespace tern::trainer {
namespace {

std::string shown(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "absent";
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
  if (batch.micro * batch.accumulation * world_size != batch.train) {
    const int64_t unit = (request.micro ? batch.micro : 1) * request.accumulation.value_or(1) * world_size;
    return error(
        Code::kInvalidArgument,
        "the batch equation does not hold: train_batch_size {} is not train_micro_batch_size_per_gpu {} x "
        "gradient_accumulation_steps {} x {} ranks; with these it must be {} {}",
        batch.train, shown(request.micro), shown(request.accumulation), world_size,
        request.micro && request.accumulation ? "exactly" : "a multiple of", unit);
  }
  return batch;
}

}  // namespace tern::trainer
