#include "trainer/run_plan.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "trainer/data/token_file.h"
#include "trainer/model/model.h"

namespace tern::trainer {
namespace {

/// What the codecs that a run may use have in common.
struct CodecTraits {
  bool may_keep = false;   ///< some can use a residual
  bool must_keep = false;  ///< some need one
  size_t block = 1;        ///< the largest; all are powers of two
};

CodecTraits traits_of(const CodecChoice& choice, bool has_residual) {
  std::vector<CodecSpec> specs = {choice.spec};
  if (choice.is_automatic) specs = allowed_codecs(choice.max_loss_gap, has_residual, sizeof(float));
  CodecTraits traits;
  for (const CodecSpec& spec : specs) {
    const CodecInfo& row = info(spec.id);
    traits.may_keep |= row.residual != ResidualUse::kNone;
    traits.must_keep |= row.residual == ResidualUse::kMandatory;
    traits.block = std::max(traits.block, row.block);
  }
  return traits;
}

/// CODECS: compression is off for the first max(100, 2 %) of the steps, 10 % for codecs with a mandatory
/// residual.
int64_t default_dense_steps(int64_t n_steps, bool must_keep) {
  const int64_t share = must_keep ? 10 : 2;
  return std::max<int64_t>(100, n_steps * share / 100);
}

/// Auto has one where that lets it take a codec that it could not take without.
bool residual_helps(const CodecChoice& codec) {
  if (!codec.is_automatic) return traits_of(codec, false).must_keep;
  return allowed_codecs(codec.max_loss_gap, true, sizeof(float)).size() >
         allowed_codecs(codec.max_loss_gap, false, sizeof(float)).size();
}

Result<bool> choose_residual(const CommunicationConfig& communication, const CodecChoice& codec) {
  const bool wanted = communication.residual.value_or(residual_helps(codec));
  if (wanted && !traits_of(codec, true).may_keep) {
    return error(Code::kInvalidArgument,
                 "communication.residual is true, but the codec {} has no use for a residual",
                 to_string(codec));
  }
  if (!wanted && !codec.is_automatic && traits_of(codec, false).must_keep) {
    return error(Code::kInvalidArgument,
                 "communication.residual is false, but the codec {} does not converge without",
                 to_string(codec));
  }
  return wanted;
}

/// Far more buckets than any network wants; the plan of each is a few dozen bytes, and all ranks hold all
/// plans.
constexpr int64_t kMostBuckets = 65'536;

Status check_buckets(const RunConfig& config, const BucketOptions& buckets) {
  const int64_t least = buckets.grain * buckets.n_ranks;
  const int64_t size = std::max(buckets.bucket_elements, least);
  const int64_t n_elements = parameter_count(config.model);
  if (n_elements / size < kMostBuckets) return {};
  return error(
      Code::kInvalidArgument,
      "deepspeed.zero_optimization.reduce_bucket_size {} makes {} buckets of {} parameters; give at least {}",
      buckets.bucket_elements, n_elements / size, n_elements, n_elements / kMostBuckets + 1);
}

int choose_threads(const RunConfig& config, const Ranks& ranks) {
  if (config.run.threads > 0) return config.run.threads;
  if (ranks.threads_set > 0) return ranks.threads_set;
  const int cores = std::max(1U, std::thread::hardware_concurrency());
  return std::max(1, cores / ranks.per_host);
}

}  // namespace

Ranks ranks_of(const World& world) {
  std::map<std::string, int> per_host;
  for (const std::string& host : world.host_ids) ++per_host[host];
  int most = 1;
  for (const auto& [host, n] : per_host) most = std::max(most, n);
  return {world.size, most, world.config.threads};
}

Result<RunPlan> plan_run(const RunConfig& config, const Ranks& ranks) {
  RunPlan plan;
  TERN_ASSIGN(plan.batch, solve_batch(config.batch, ranks.n));
  const Result<CodecChoice> codec = parse_codec_choice(config.communication.codec);
  if (!codec.ok()) return error(codec.error().code, "communication.codec: {}", codec.error().message);
  plan.codec = *codec;
  TERN_ASSIGN(plan.residual, choose_residual(config.communication, plan.codec));
  if (const Status fit = check_residual(plan.codec.spec, plan.residual);
      !plan.codec.is_automatic && !fit.ok())
    return error(fit.error().code, "communication.residual: {}", fit.error().message);
  const CodecTraits traits = traits_of(plan.codec, plan.residual);
  plan.dense_steps = plan.codec.is_dense() ? 0
                                           : config.communication.dense_steps.value_or(
                                                 default_dense_steps(config.run.steps, traits.must_keep));
  if (config.model.vocab < kByteVocabulary) {
    return error(Code::kInvalidArgument,
                 "model.vocab_size {} is smaller than the {} tokens of data.tokenizer bytes",
                 config.model.vocab, kByteVocabulary);
  }
  plan.threads = choose_threads(config, ranks);
  plan.buckets = {config.zero.bucket_elements, ranks.n,
                  std::max(kParameterAlignment, static_cast<int64_t>(traits.block))};
  TERN_TRY(check_buckets(config, plan.buckets));
  return plan;
}

MemoryNeed predict_memory(const RunConfig& config, const RunPlan& plan) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t n = parameter_count(config.model);
  const int64_t owners = config.zero.stage == 2 ? plan.buckets.n_ranks : 1;
  MemoryNeed need;
  need.parameters = kFloat * n;
  need.gradients = kFloat * n;
  need.moments = 2 * kFloat * n / owners;
  need.residuals = plan.residual ? 2 * kFloat * n : 0;
  const Shape shape{static_cast<int>(plan.batch.micro), config.data.sequence_length};
  need.activations = Model<float>::activation_bytes(config.model, shape, plan.threads);
  return need;
}

int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return -1;
}

Status check_memory(const MemoryNeed& need, const Ranks& ranks, int64_t free_bytes) {
  if (free_bytes < 0 || need.total() * ranks.per_host <= free_bytes) return {};
  return error(
      Code::kOutOfMemory,
      "the run needs {:.2f} GB per rank ({} ranks on a machine), and this machine has {:.2f} GB free; take "
      "more machines, deepspeed.zero_optimization.stage 2, a smaller micro batch or a smaller model",
      static_cast<double>(need.total()) / 1e9, ranks.per_host, static_cast<double>(free_bytes) / 1e9);
}

}  // namespace tern::trainer
