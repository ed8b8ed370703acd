// codec_perf: the codecs' kernels and the reduction on one core, beside memcpy and plain reading in the same
// run.
//
// Each round runs every case --warm times and then once timed, so that a change in the machine's load meets
// all cases; a row is the median of the rounds. Time is the thread's processor time: other programs that take
// turns on the core do not count; what they do to the caches and the memory does. Every result is compared
// with that of the scalar kernels. Two measures per row:
//   GB/s      decoded bytes (n elements) per second; x memcpy compares it with the bytes that memcpy copies
//   per second roofline  bytes that must move per second, as a share of the memory bandwidth: the better of
//   what reading and
//             what memcpy (two bytes per byte copied) reach
#include <fmt/format.h>

#include <ctime>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags.h"
#include "bench/kernel_cases.h"
#include "kernels/targets.h"
#include "runtime/base/crc32c.h"

namespace tern::bench {
namespace {

/// Every row with its defaults, and topk with its largest k.
std::vector<std::string> all_codecs() {
  std::vector<std::string> texts;
  for (const CodecInfo& row : codecs()) texts.push_back(to_string({.id = row.id}));
  texts.push_back(to_string({.id = CodecId::kTopk, .k = 128}));
  return texts;
}

struct Options {
  size_t n = size_t{4} << 20;
  int n_rounds = 11;
  std::vector<std::string> codecs = all_codecs();
  std::vector<std::string> dtypes = {"fp32"};
  std::vector<int> n_srcs = {2, 4, 8};
  std::string simd;
  int n_warm = 1;
  std::string json_path;
};

struct Row {
  double us = 0;
  double us_min = 0;
  double us_max = 0;
  double gb_per_s = 0;
  double roofline_share = 0;
  bool correct = false;
};

uint32_t checksum(const KernelCase& c) {
  uint32_t crc = 0;
  for (const auto output : c.outputs) crc = crc32c(output, crc);
  return crc;
}

uint32_t result_of(const KernelCase& c, std::string_view simd) {
  std::optional<OnlySimdTarget> only;
  if (!simd.empty()) only.emplace(simd);
  c.reset();
  c.run();
  return checksum(c);
}

/// Processor time of this thread, microseconds.
double processor_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

/// Times every case once per round; [case][round] in microseconds.
std::vector<std::vector<double>> time_cases(const std::vector<KernelCase>& cases, const Options& options) {
  std::optional<OnlySimdTarget> only;
  if (!options.simd.empty()) only.emplace(options.simd);
  std::vector<std::vector<double>> us(cases.size());
  for (int round = 0; round < options.n_rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      for (int warm = 0; warm < options.n_warm; ++warm) cases[i].run();
      const double start = processor_us();
      cases[i].run();
      us[i].push_back(processor_us() - start);
    }
  }
  return us;
}

std::vector<Row> make_rows(const KernelCases& cases, const Options& options) {
  std::vector<Row> rows;
  double bandwidth = 0;  // bytes per microsecond; the first cases measure it
  const auto us = time_cases(cases.all(), options);
  for (size_t i = 0; i < us.size(); ++i) {
    const KernelCase& c = cases.all()[i];
    std::vector<double> sorted = us[i];
    std::sort(sorted.begin(), sorted.end());
    Row row{.us = sorted[sorted.size() / 2], .us_min = sorted.front(), .us_max = sorted.back()};
    row.gb_per_s = static_cast<double>(cases.n() * size_of(c.dtype)) / row.us * 1e-3;
    if (i < KernelCases::kMemoryCases) bandwidth = std::max(bandwidth, c.n_bytes_moved / row.us);
    row.roofline_share = c.n_bytes_moved / row.us;
    row.correct = result_of(c, options.simd) == result_of(c, simd_targets().back());
    rows.push_back(row);
  }
  for (Row& row : rows) row.roofline_share /= bandwidth;
  return rows;
}

std::string codec_text(const KernelCase& c) {
  return c.codec == "none" && c.n_srcs > 0 ? fmt::format("{} sources", c.n_srcs) : c.codec;
}

void print_table(const KernelCases& cases, const std::vector<Row>& rows, std::string_view simd) {
  fmt::print("# {} elements, {}, 1 core; us: median, least and most of the rounds\n", cases.n(), simd);
  fmt::print("{:<18} {:<12} {:<6} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9}  {}\n", "kernel", "codec", "dtype",
             "us", "min", "max", "GB/s", "x memcpy", "roofline", "check");
  for (size_t i = 0; i < rows.size(); ++i) {
    const KernelCase& c = cases.all()[i];
    const Row& row = rows[i];
    fmt::print("{:<18} {:<12} {:<6} {:>9.0f} {:>9.0f} {:>9.0f} {:>7.2f} {:>9.2f} {:>8.0f}%  {}\n", c.kernel,
               codec_text(c), name(c.dtype), row.us, row.us_min, row.us_max, row.gb_per_s,
               row.gb_per_s / rows[0].gb_per_s, 100 * row.roofline_share, row.correct ? "ok" : "WRONG");
  }
}

nlohmann::json to_json(const KernelCases& cases, const std::vector<Row>& rows, std::string_view simd) {
  nlohmann::json memory = nlohmann::json::array();
  nlohmann::json kernels = nlohmann::json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    const KernelCase& c = cases.all()[i];
    nlohmann::json row = {{"kernel", c.kernel},
                          {"codec", c.codec},
                          {"dtype", name(c.dtype)},
                          {"n", cases.n()},
                          {"us", rows[i].us},
                          {"us_min", rows[i].us_min},
                          {"us_max", rows[i].us_max},
                          {"gb_per_s", rows[i].gb_per_s},
                          {"memcpy_gb_per_s", rows[0].gb_per_s},
                          {"roofline_share", rows[i].roofline_share},
                          {"correct", rows[i].correct}};
    if (c.n_srcs > 0) row["n_srcs"] = c.n_srcs;
    (i < KernelCases::kMemoryCases ? memory : kernels).push_back(std::move(row));
  }
  return {
      {"program", "codec_perf"}, {"simd", simd}, {"memory", std::move(memory)}, {"rows", std::move(kernels)}};
}

/// Runs everything; the number of rows whose result was wrong.
Result<int> run(const Options& options) {
  const auto targets = simd_targets();
  if (!options.simd.empty() && std::find(targets.begin(), targets.end(), options.simd) == targets.end()) {
    return error(Code::kInvalidArgument, "--simd {}: this machine has {}", options.simd,
                 fmt::join(targets, ", "));
  }
  std::vector<Dtype> dtypes;
  for (const std::string& text : options.dtypes) {
    TERN_ASSIGN(const Dtype dtype, parse_dtype(text));
    if (!is_encodable(dtype))
      return error(Code::kInvalidArgument, "--dtype {}: codecs take {}", text, encodable_dtypes());
    dtypes.push_back(dtype);
  }
  KernelCases cases(options.n);
  for (const std::string& text : options.codecs) {
    TERN_ASSIGN(const CodecSpec spec, parse_codec(text));
    for (const Dtype dtype : dtypes) cases.add_codec(spec, dtype);
  }
  for (const int n_srcs : options.n_srcs) cases.add_reduce(Dtype::kFloat32, n_srcs);
  cases.add_reduce(Dtype::kBfloat16, 2);
  const std::vector<Row> rows = make_rows(cases, options);
  const std::string_view simd = options.simd.empty() ? targets.front() : std::string_view(options.simd);
  print_table(cases, rows, simd);
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    file << to_json(cases, rows, simd).dump(2) << '\n';
    if (!file.flush()) return error(Code::kIo, "cannot write {}", options.json_path);
  }
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.correct; }));
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  tern::bench::Options options;
  CLI::App app("Times the codecs' kernels and the reduction as shares of the memory bandwidth.");
  tern::bench::prepare_flags(app);
  app.add_option("-n,--elements", options.n, "elements per buffer")->check(CLI::Range(1UL, 1UL << 30));
  app.add_option("--rounds", options.n_rounds, "measured rounds")->check(CLI::Range(5, 10000));
  app.add_option("--codec", options.codecs, "codecs to time (NAME[:key=value,...])");
  app.add_option("--dtype", options.dtypes, "element types of the codecs' rows: fp32, bf16, fp16");
  app.add_option("--sources", options.n_srcs, "numbers of sources for reduce")->check(CLI::Range(1, 1024));
  app.add_option("--simd", options.simd, "instruction set instead of the best one");
  app.add_option("--warm", options.n_warm,
                 "runs of a case before its timed one, in every round; 0: cold caches")
      ->check(CLI::Range(0, 1000));
  app.add_option("--json", options.json_path, "file that receives the rows");
  const std::vector<const char*> args(argv, argv + argc);
  if (const auto status = tern::bench::end_at_flags(app, args)) return *status;
  const auto n_wrong = tern::bench::run(options);
  if (!n_wrong.ok()) {
    fmt::print(stderr, "codec_perf: {}\n", n_wrong.error().message);
    return 2;
  }
  return *n_wrong == 0 ? 0 : 1;
}
