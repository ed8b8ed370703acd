// codec_accuracy: what each codec loses of real gradients, over several numbers of ranks.
//
//   codec_accuracy [RUN.json] [--text FILE] [--steps 20] [--ranks 2,4,8,16] [--codec NAME...] [--json FILE]
//
// A model is trained for some steps; then each rank takes the gradient of sequences of its own, and the
// ranks, threads of this process, sum these gradients by reduce_scatter and all_reduce through every codec,
// with its default options, in one call over all matrices. Codecs that must have a residual get one of zeros,
// so a row is what one step loses. The measure is the vector-normalised mean squared error, |estimate -
// sum|^2 / |sum|^2, with the sum in double. It depends on how much the ranks' gradients agree: the table's
// first line says how large their sum is, 1 where they have nothing in common and p where they are equal.
//
// A row is bad when an error exceeds the codec's bar, or when it grows with the ranks: a path that encodes
// again at every hop does.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/flags.h"
#include "bench/model_gradients.h"
#include "runtime/base/output.h"
#include "runtime/communicator/communicator.h"

namespace tern::bench {
namespace {

std::vector<std::string> all_codecs() {
  std::vector<std::string> texts;
  for (const CodecInfo& row : codecs()) texts.push_back(to_string({.id = row.id}));
  return texts;
}

struct Options {
  GradientsRequest gradients;
  std::vector<int> n_ranks = {2, 4, 8, 16};
  std::vector<std::string> codecs = all_codecs();
  std::string json_path;
};

constexpr int kGrowthFrom = 8;
constexpr double kMostGrowth = 1.2;
/// An estimate of zeros loses as much.
constexpr double kAll = 1;

/// Most that a codec may lose, as vNMSE.
///
/// once: of one encoding of a rank's gradient; an owner's encoding of the sum may lose as much again.
/// q8, q5, q4h, topk: references of one encoding of heavy-tailed numbers (topk: 1 % of Gaussian ones keep
/// 8.5 % of their energy); q6 has steps half as long as q5's. bf16, fp16, fp8, mxfp8: half a unit in the last
/// place of every element. sign1: the encoding is a contraction.
struct Bar {
  CodecId codec;
  double once;
  double reduce_scatter = kAll;  ///< from kGrowthFrom ranks on, over which errors average out
};
constexpr Bar kBars[] = {{CodecId::kBf16, 0x1p-18},  {CodecId::kFp16, 0x1p-22}, {CodecId::kQ8, 2.0e-4},
                         {CodecId::kFp8, 0x1p-8},    {CodecId::kMxfp8, 0x1p-8}, {CodecId::kQ6, 5e-4, 1e-3},
                         {CodecId::kQ5, 2e-3, 1e-3}, {CodecId::kQ4h, 1.4e-2},   {CodecId::kTopk, 0.915},
                         {CodecId::kSign1, kAll}};
// none, and codecs without a bar: what the additions in fp32 lose.
constexpr double kAdditions = 0x1p-40;

struct Row {
  CodecSpec codec;
  Collective collective = Collective::kReduceScatter;
  std::vector<double> vnmse = {};               ///< by Options::n_ranks
  std::optional<double> growth = std::nullopt;  ///< from kGrowthFrom to the most ranks
  std::string fault = {};                       ///< empty: good

  double bar(int n_ranks) const {
    const auto* const bar = std::ranges::find(kBars, codec.id, &Bar::codec);
    if (bar == std::end(kBars)) return kAdditions;
    if (collective == Collective::kAllReduce) return std::min(kAll, 2 * bar->once);
    return n_ranks < kGrowthFrom ? bar->once : std::min(bar->once, bar->reduce_scatter);
  }
};

/// The gradients of the first ranks, and their sum.
class Ranks {
 public:
  Ranks(std::vector<std::vector<float>>& gradients, int n_ranks) : gradients_(gradients), n_ranks_(n_ranks) {
    // Whole blocks of every codec for each rank, as the trainer's buckets have them; zeros lose nothing.
    const size_t unit = kRunGrain * static_cast<size_t>(n_ranks);
    n_ = (gradients_[0].size() + unit - 1) / unit * unit;
    exact_.resize(n_);
    double energies = 0;
    for (int r = 0; r < n_ranks; ++r) {
      std::vector<float>& gradient = gradients_[static_cast<size_t>(r)];
      gradient.resize(n_);
      for (size_t i = 0; i < n_; ++i) {
        const auto x = static_cast<double>(gradient[i]);
        exact_[i] += x;
        energies += x * x;
      }
    }
    for (const double x : exact_) energy_ += x * x;
    agreement_ = energy_ / energies;
  }

  /// |sum|^2 over the sum of the ranks' |g|^2.
  double agreement() const { return agreement_; }

  /// The vNMSE of each row's call. Errors: those of the collectives.
  Result<std::vector<double>> measure(std::span<const Row> rows, const Config& config) const {
    TERN_ASSIGN(const auto worlds, World::in_process_world(n_ranks_, config));
    std::vector<Result<std::vector<double>>> lost(worlds.size(), std::vector<double>());
    std::vector<std::thread> threads;
    for (const World& world : worlds) {
      threads.emplace_back([&, this] { lost[static_cast<size_t>(world.rank)] = measure_on(world, rows); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<double> vnmse(rows.size());
    for (const auto& of_rank : lost) {
      TERN_TRY(of_rank.ok() ? Status() : Status(of_rank.error()));
      for (size_t i = 0; i < rows.size(); ++i) vnmse[i] += (*of_rank)[i] / energy_;
    }
    return vnmse;
  }

 private:
  /// What each row's call lost of this rank's share of the sum. Ranks have the same bytes after an
  /// all_reduce, so the shares together are the whole.
  Result<std::vector<double>> measure_on(const World& world, std::span<const Row> rows) const {
    TERN_ASSIGN(Communicator comm, Communicator::create(world));
    const std::span<const float> in = gradients_[static_cast<size_t>(comm.rank())];
    std::vector<float> out(n_);
    std::vector<float> residual(n_);
    const size_t n_share = n_ / static_cast<size_t>(n_ranks_);
    const size_t first = n_share * static_cast<size_t>(comm.rank());
    std::vector<double> lost;
    for (const Row& row : rows) {
      CallOptions call{.codec = row.codec};
      if (info(row.codec.id).residual == ResidualUse::kMandatory) {
        std::ranges::fill(residual, 0.0F);
        call.residual = residual.data();
      }
      const std::span<float> share = std::span(out).subspan(first, n_share);
      const Status status = row.collective == Collective::kAllReduce
                                ? comm.all_reduce(in, std::span(out), Op::kSum, call)
                                : comm.reduce_scatter(in, share, Op::kSum, call);
      if (!status.ok()) {
        comm.abort(status.error().message);
        return status.error();
      }
      lost.push_back(0);
      for (size_t i = 0; i < n_share; ++i)
        lost.back() += std::pow(static_cast<double>(share[i]) - exact_[first + i], 2);
    }
    return lost;
  }

  std::vector<std::vector<float>>& gradients_;
  int n_ranks_;
  size_t n_ = 0;
  std::vector<double> exact_;
  double energy_ = 0;
  double agreement_ = 0;
};

/// Sets growth and fault.
void judge(Row& row, std::span<const int> n_ranks) {
  for (size_t i = 0; i < n_ranks.size() && row.fault.empty(); ++i) {
    const double bar = row.bar(n_ranks[i]);
    if (row.vnmse[i] <= bar) continue;  // NaN is bad
    row.fault = fmt::format("{:.2e} on {} ranks, more than {:.2e}", row.vnmse[i], n_ranks[i], bar);
  }
  const auto from = std::ranges::find(n_ranks, kGrowthFrom);
  if (from == n_ranks.end() || n_ranks.back() <= kGrowthFrom) return;
  if (row.codec.id == CodecId::kNone) return;  // the error of additions grows with their number
  row.growth = row.vnmse.back() / row.vnmse[static_cast<size_t>(from - n_ranks.begin())];
  if (*row.growth <= kMostGrowth || !row.fault.empty()) return;
  row.fault = fmt::format("grows {:.2f}x from {} to {} ranks, more than {}x", *row.growth, kGrowthFrom,
                          n_ranks.back(), kMostGrowth);
}

struct Report {
  ModelGradients gradients;
  std::vector<double> agreement;  ///< by Options::n_ranks
  std::vector<Row> rows;
};

void print_head(const Options& options, const ModelGradients& gradients) {
  fmt::print("# {}: {} parameters, {} steps, loss {:.3f} -> {:.3f}\n", options.gradients.run_file,
             gradients.n_parameters, options.gradients.n_steps, gradients.first_loss, gradients.last_loss);
  fmt::print(
      "# {} elements, sequences per rank: {}; vNMSE by ranks p; growth from p={}; bar: of the most ranks\n",
      gradients.of_ranks[0].size(), gradients.n_sequences, kGrowthFrom);
}

void print_table(const Options& options, const Report& report) {
  fmt::print("{:<10} {:<15}", "codec", "collective");
  for (const int p : options.n_ranks) fmt::print(" {:>9}", fmt::format("p={}", p));
  fmt::print(" {:>9} {:>7}  {}\n{:<26}", "bar", "growth", "verdict", "|sum|^2 / sum |g|^2");
  for (const double agreement : report.agreement) fmt::print(" {:>9.3f}", agreement);
  fmt::print("\n");
  for (const Row& row : report.rows) {
    fmt::print("{:<10} {:<15}", to_string(row.codec), name(row.collective));
    for (const double vnmse : row.vnmse) fmt::print(" {:>9.2e}", vnmse);
    fmt::print(" {:>9.2e} {:>7}  {}\n", row.bar(options.n_ranks.back()),
               row.growth ? fmt::format("{:.2f}", *row.growth) : "-",
               row.fault.empty() ? "good" : "bad: " + row.fault);
  }
}

nlohmann::json to_json(const Options& options, const Report& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : report.rows) {
    for (size_t i = 0; i < row.vnmse.size(); ++i) {
      rows.push_back({{"codec", to_string(row.codec)},
                      {"collective", name(row.collective)},
                      {"n_ranks", options.n_ranks[i]},
                      {"vnmse", row.vnmse[i]},
                      {"most_vnmse", row.bar(options.n_ranks[i])},
                      {"growth", row.growth ? nlohmann::json(*row.growth) : nlohmann::json()},
                      {"good", row.fault.empty()},
                      {"fault", row.fault}});
    }
  }
  nlohmann::json agreement = nlohmann::json::array();
  for (const double x : report.agreement) agreement.push_back(x);
  return {{"program", "codec_accuracy"},
          {"run", options.gradients.run_file},
          {"n_steps", options.gradients.n_steps},
          {"n_sequences", report.gradients.n_sequences},
          {"n_parameters", report.gradients.n_parameters},
          {"first_loss", report.gradients.first_loss},
          {"last_loss", report.gradients.last_loss},
          {"n_ranks", options.n_ranks},
          {"agreement", std::move(agreement)},
          {"rows", std::move(rows)}};
}

/// Runs everything; the number of rows that are bad.
Result<int> run(Options options) {
  std::ranges::sort(options.n_ranks);
  TERN_ASSIGN(const Config config, Config::from_environment());
  Report report;
  for (const std::string& text : options.codecs) {
    TERN_ASSIGN(const CodecSpec spec, parse_codec(text));
    for (const Collective collective : {Collective::kReduceScatter, Collective::kAllReduce})
      report.rows.push_back({.codec = spec, .collective = collective});
  }
  options.gradients.n_ranks = options.n_ranks.back();
  TERN_ASSIGN(report.gradients, model_gradients(options.gradients));
  print_head(options, report.gradients);
  for (const int n_ranks : options.n_ranks) {
    const Ranks ranks(report.gradients.of_ranks, n_ranks);
    TERN_ASSIGN(const std::vector<double> vnmse, ranks.measure(report.rows, config));
    for (size_t i = 0; i < vnmse.size(); ++i) report.rows[i].vnmse.push_back(vnmse[i]);
    report.agreement.push_back(ranks.agreement());
  }
  for (Row& row : report.rows) judge(row, options.n_ranks);
  print_table(options, report);
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    file << to_json(options, report).dump(2) << '\n';
    if (!file.flush()) return error(Code::kIo, "cannot write {}", options.json_path);
  }
  return static_cast<int>(std::ranges::count_if(report.rows, [](const Row& r) { return !r.fault.empty(); }));
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  tern::bench::Options options;
  CLI::App app("What each codec loses of real gradients, by collective and number of ranks.");
  tern::bench::prepare_flags(app);
  app.add_option("RUN.json", options.gradients.run_file, "the model, its data and how it trains");
  app.add_option("--text", options.gradients.text, "text to train on instead of the run file's");
  app.add_option("--steps", options.gradients.n_steps, "updates before the gradients are taken")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--sequences", options.gradients.n_sequences,
                 "sequences of each rank's gradient; 0: as the run file says")
      ->check(CLI::Range(0, 4096));
  app.add_option("--ranks", options.n_ranks, "numbers of ranks")->delimiter(',')->check(CLI::Range(1, 64));
  app.add_option("--codec", options.codecs, "codecs to measure (NAME[:key=value,...])");
  app.add_option("--json", options.json_path, "file that receives the rows");
  const std::vector<const char*> args(argv, argv + argc);
  if (const auto status = tern::bench::end_at_flags(app, args)) return *status;
  return tern::guarded_main("codec_accuracy", [&] {
    const auto n_bad = tern::bench::run(options);
    if (n_bad.ok()) return *n_bad == 0 ? 0 : 1;
    fmt::print(stderr, "codec_accuracy: {}\n", n_bad.error().message);
    return 2;
  });
}
