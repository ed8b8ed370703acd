#include "trainer/metrics.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace tern::trainer {
namespace {

constexpr double kMs = 1e3;

/// JSON has no NaN; null says that the value does not exist.
nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string kept_lines(const std::string& path, int64_t last_step) {
  std::string kept;
  if (last_step == 0) return kept;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    // The last line of a run that was killed may be cut off.
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) continue;
    if (record["step"].get<int64_t>() <= last_step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

Traffic StepRecord::traffic() const {
  Traffic sum = gradients;
  sum += parameters;
  return sum;
}

nlohmann::ordered_json to_json(const StepRecord& record) {
  const Traffic all = record.traffic();
  nlohmann::ordered_json json = {{"step", record.step},
                                 {"loss", number_or_null(record.loss)},
                                 {"lr", record.lr},
                                 {"grad_norm", number_or_null(record.grad_norm)},
                                 {"tokens_per_s", record.tokens_per_second()},
                                 {"step_ms", record.step_seconds * kMs},
                                 {"comm_ms", all.comm_seconds * kMs},
                                 {"exposed_ms", all.exposed_seconds * kMs},
                                 {"bytes_on_wire", all.bytes_on_wire},
                                 {"bytes_dense", all.bytes_dense},
                                 {"gradient_bytes_on_wire", record.gradients.bytes_on_wire},
                                 {"gradient_bytes_dense", record.gradients.bytes_dense},
                                 {"data_wait_ms", record.data_wait_seconds * kMs},
                                 {"codec", record.codec}};
  if (record.codec != "none") {
    json["saturated"] = record.n_saturated;
    json["non_finite_buckets"] = record.n_non_finite;
  }
  if (record.telemetry) {
    json["vnmse"] = record.telemetry->vnmse;
    json["residual_norm"] = number_or_null(record.telemetry->residual_norm);
  }
  if (record.mfu > 0) json["mfu"] = record.mfu;
  if (!record.skipped.empty()) json["skipped"] = record.skipped;
  return json;
}

Result<MetricsFile> MetricsFile::open(const std::string& path, int64_t last_step) {
  const std::string kept = kept_lines(path, last_step);
  TERN_ASSIGN(OutputFile file, OutputFile::create(path));
  TERN_TRY(file.write(kept));
  return MetricsFile(std::move(file));
}

Status MetricsFile::append(const StepRecord& record) {
  return file_.write(to_json(record).dump() + "\n");
}

nlohmann::ordered_json Summary::to_json(const std::string& codec) const {
  constexpr size_t kLastSteps = 10;
  Traffic all;
  Traffic gradients;
  std::vector<double> step_seconds;
  std::vector<double> utilisation;
  double total_seconds = 0;
  double loss = 0;
  int64_t n_skipped = 0;
  const size_t first_of_last = records_.size() - std::min(records_.size(), kLastSteps);
  for (size_t idx = 0; idx < records_.size(); ++idx) {
    const StepRecord& record = records_[idx];
    all += record.traffic();
    gradients += record.gradients;
    step_seconds.push_back(record.step_seconds);
    utilisation.push_back(record.mfu);
    total_seconds += record.step_seconds;
    n_skipped += record.skipped.empty() ? 0 : 1;
    if (idx >= first_of_last) loss += record.loss;
  }
  const auto n = std::max<size_t>(1, records_.size());
  const double typical = median(step_seconds);
  const auto tokens = records_.empty() ? 0.0 : static_cast<double>(records_.back().tokens);
  const auto n_last = static_cast<double>(std::max<size_t>(1, records_.size() - first_of_last));
  return {{"codec", codec},
          {"steps", records_.empty() ? 0 : records_.back().step},
          {"skipped_steps", n_skipped},
          {"bytes_on_wire_per_step", all.bytes_on_wire / n},
          {"bytes_dense_per_step", all.bytes_dense / n},
          {"gradient_bytes_on_wire_per_step", gradients.bytes_on_wire / n},
          {"gradient_bytes_dense_per_step", gradients.bytes_dense / n},
          {"step_ms", typical * kMs},
          {"tokens_per_s", typical > 0 ? tokens / typical : 0.0},
          {"mfu", median(utilisation)},
          {"exposed_percent", total_seconds > 0 ? 100.0 * all.exposed_seconds / total_seconds : 0.0},
          {"comm_ms", all.comm_seconds * kMs / static_cast<double>(n)},
          {"train_loss", number_or_null(loss / n_last)}};
}

}  // namespace tern::trainer
