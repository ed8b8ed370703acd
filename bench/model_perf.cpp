// Training speed of the dense model on this machine's CPU, as a share of its matrix-product peak in the same
// run.
//
//   model_perf [--threads 1,2] [--batch 8 --tokens 256 --layers 6 --hidden 384 ...] [--steps 10] [--json
//   FILE]
//
// A step is forward, backward and AdamW of one micro-batch. Peak and step are measured in turns; medians are
// reported.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/flags.h"
#include "runtime/base/clock.h"
#include "runtime/base/philox.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/peak.h"
#include "trainer/model/model.h"

namespace tern::trainer {
namespace {

struct Options {
  LlamaConfig config;
  Shape shape{8, 256};
  std::vector<int> threads;
  int steps = 10;
  std::string json;
};

/// One step, in seconds.
struct Sample {
  double peak_flops = 0;
  double step = 0;
  double adamw = 0;
  PassTimes parts;
};

/// A row of the report: medians over the steps, times in milliseconds.
struct Row {
  int threads = 1;
  double peak_gflops = 0;
  double tokens_per_s = 0;
  double mfu = 0, mfu_low = 0, mfu_high = 0;
  double step_ms = 0;
  std::vector<std::pair<std::string, double>> parts_ms = {};
};

struct Training {
  Model<float> model;
  std::vector<float> params, grads, m, v;
  std::vector<int32_t> tokens, targets;
  int64_t step = 0;

  Training(Model<float> model_in, const Options& o) : model(std::move(model_in)) {
    const auto n = static_cast<size_t>(model.layout().n_elements());
    params.resize(n);
    grads.resize(n);
    m.resize(n);
    v.resize(n);
    initialise<float>(o.config, model.layout(), 1, 0, params);
    Philox random(2);
    for (int64_t i = 0; i < o.shape.rows(); ++i)
      tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(o.config.vocab))));
    targets.assign(tokens.begin() + 1, tokens.end());
    targets.push_back(-1);
  }

  Sample run() {
    Sample sample;
    sample.peak_flops = measure_peak_flops(model.team(), 2);
    model.reset_times();
    std::fill(grads.begin(), grads.end(), 0.0F);
    const auto start = Clock::now();
    model.forward(params, tokens, targets);
    model.backward(params, grads, 1.0F, {});
    const double passes = seconds_since(start);
    const AdamW adamw{.step = ++step, .lr = 1e-4, .grad_scale = 1.0 / static_cast<double>(tokens.size())};
    adamw_step<float>(model.team(), adamw, params, grads, m, v);
    sample.step = seconds_since(start);
    sample.adamw = sample.step - passes;
    sample.parts = model.times();
    return sample;
  }
};

template <class Get>
double median(const std::vector<Sample>& samples, const Get& get) {
  std::vector<double> values;
  for (const Sample& s : samples) values.push_back(get(s));
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

Row summarise(const Options& o, int threads, const std::vector<Sample>& samples) {
  const auto rows = static_cast<double>(o.shape.rows());
  const double flops = flops_per_token(o.config, o.shape.tokens) * rows;
  const auto mfu = [&](const Sample& s) { return flops / s.step / s.peak_flops; };
  Row row{.threads = threads};
  row.peak_gflops = median(samples, [](const Sample& s) { return s.peak_flops * 1e-9; });
  row.tokens_per_s = median(samples, [&](const Sample& s) { return rows / s.step; });
  row.mfu = median(samples, mfu);
  const auto [low, high] =
      std::minmax_element(samples.begin(), samples.end(), [&](auto& a, auto& b) { return mfu(a) < mfu(b); });
  row.mfu_low = mfu(*low);
  row.mfu_high = mfu(*high);
  const auto part = [&](const char* name, auto get) {
    row.parts_ms.emplace_back(name, 1e3 * median(samples, get));
  };
  row.step_ms = 1e3 * median(samples, [](const Sample& s) { return s.step; });
  part("gemm", [](const Sample& s) { return s.parts.gemm; });
  part("attention", [](const Sample& s) { return s.parts.attention; });
  part("norm", [](const Sample& s) { return s.parts.norm; });
  part("activation", [](const Sample& s) { return s.parts.activation; });
  part("loss", [](const Sample& s) { return s.parts.loss; });
  part("embedding", [](const Sample& s) { return s.parts.embedding; });
  part("adamw", [](const Sample& s) { return s.adamw; });
  double known = 0;
  for (const auto& [name, ms] : row.parts_ms) known += ms;
  row.parts_ms.emplace_back("other",
                            row.step_ms - known);  // meetings of the team, and medians that do not add up
  return row;
}

Result<Row> measure(const Options& o, int threads) {
  TERN_ASSIGN(auto model, Model<float>::create(o.config, o.shape, threads));
  Training training(std::move(model), o);
  static_cast<void>(training.run());
  std::vector<Sample> samples;
  for (int i = 0; i < o.steps; ++i) samples.push_back(training.run());
  return summarise(o, threads, samples);
}

void print(const Row& row) {
  fmt::print("{:7} {:9.1f} {:10.0f} {:6.1f} {:5.1f}-{:<5.1f} {:9.1f} ", row.threads, row.peak_gflops,
             row.tokens_per_s, 100 * row.mfu, 100 * row.mfu_low, 100 * row.mfu_high, row.step_ms);
  for (const auto& [name, ms] : row.parts_ms) fmt::print(" {} {:.1f}", name, ms);
  fmt::print("\n");
}

nlohmann::json as_json(const Row& row) {
  nlohmann::json parts;
  for (const auto& [name, ms] : row.parts_ms) parts[name] = ms;
  return {{"threads", row.threads},           {"peak_gflops", row.peak_gflops},
          {"tokens_per_s", row.tokens_per_s}, {"mfu", row.mfu},
          {"mfu_low", row.mfu_low},           {"mfu_high", row.mfu_high},
          {"step_ms", row.step_ms},           {"parts_ms", parts}};
}

int run(const Options& o) {
  fmt::print(
      "# {} parameters, {} layers, hidden {}, {}/{} heads of {}, intermediate {}, vocabulary {}; {} x {} "
      "tokens\n",
      parameter_count(o.config), o.config.layers, o.config.hidden, o.config.heads, o.config.kv_heads,
      o.config.head_dim, o.config.intermediate, o.config.vocab, o.shape.batch, o.shape.tokens);
  fmt::print(
      "# {:.1f} MFLOP per token (6 x matmul parameters + attention); median of {} steps, lowest-highest "
      "MFU\n",
      flops_per_token(o.config, o.shape.tokens) * 1e-6, o.steps);
  fmt::print("{:>7} {:>9} {:>10} {:>6} {:>11} {:>9}  {}\n", "threads", "GFLOP/s", "tokens/s", "MFU %",
             "spread", "step ms", "of which ms");
  nlohmann::json rows = nlohmann::json::array();
  for (const int threads : o.threads) {
    const Result<Row> row = measure(o, threads);
    if (!row.ok()) {
      fmt::print(stderr, "model_perf: {}\n", row.error().message);
      return 1;
    }
    print(*row);
    rows.push_back(as_json(*row));
  }
  if (o.json.empty()) return 0;
  std::ofstream file(o.json);
  file << nlohmann::json{{"rows", rows}}.dump(2) << '\n';
  if (file.flush()) return 0;
  fmt::print(stderr, "model_perf: cannot write {}\n", o.json);
  return 1;
}

}  // namespace
}  // namespace tern::trainer

int main(int argc, char** argv) {
  tern::trainer::Options o;
  CLI::App app("Training speed of the dense model as a share of this machine's matrix-product peak");
  tern::bench::prepare_flags(app);
  app.add_option("--batch", o.shape.batch, "sequences per micro-batch");
  app.add_option("--tokens", o.shape.tokens, "tokens per sequence");
  app.add_option("--layers", o.config.layers);
  app.add_option("--hidden", o.config.hidden);
  app.add_option("--intermediate", o.config.intermediate);
  app.add_option("--heads", o.config.heads);
  app.add_option("--kv-heads", o.config.kv_heads);
  app.add_option("--head-dim", o.config.head_dim);
  app.add_option("--vocab", o.config.vocab);
  app.add_flag("--tied", o.config.tie_embeddings, "the head shares the embedding's weight");
  app.add_option("--threads", o.threads, "thread counts, one row each (default: 1 and all cores)")
      ->delimiter(',');
  app.add_option("--steps", o.steps, "measured steps")->check(CLI::Range(1, 1 << 20));
  app.add_option("--json", o.json, "write the rows to this file too");
  const std::vector<const char*> args(argv, argv + argc);
  if (const auto status = tern::bench::end_at_flags(app, args)) return *status;
  if (o.threads.empty()) {
    const int n_cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    o.threads = n_cores > 1 ? std::vector<int>{1, n_cores} : std::vector<int>{1};
  }
  return tern::trainer::run(o);
}
