#include "bench/perf_options.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>

#include "bench/flags.h"
#include "runtime/base/dtype.h"
#include "runtime/base/size.h"

namespace tern::bench {
namespace {

/// A flag that nccl-tests has and that means nothing without a GPU or with Tern's calls.
struct InertFlag {
  std::string_view names;
  std::string_view doc;
};
constexpr auto kInertFlags = std::to_array<InertFlag>({
    {"-p,--parallel_init", "ranks connect at the same time anyway"},
    {"-z,--blocking", "every timed call is complete before the next one starts (-m groups them)"},
    {"-y,--stream_null", "CUDA streams"},
    {"-G,--cudagraph", "CUDA graphs"},
    {"-x,--cta_policy", "GPU blocks"},
    {"-D,--device_implementation", "kernels that call the device API"},
    {"-V,--device_cta_count", "GPU blocks of the device API"},
});

void add_sizes(CLI::App& app, PerfOptions& o) {
  const auto size = [&app](const char* names, uint64_t* target, const char* doc) {
    app.add_option_function<std::string>(
           names,
           [target, names](const std::string& text) {
             const Result<uint64_t> parsed = parse_size(text);
             if (!parsed.ok()) throw CLI::ValidationError(names, parsed.error().message);
             *target = *parsed;
           },
           doc)
        ->type_name("SIZE")
        ->default_str(format_size(*target));
  };
  size("-b,--minbytes", &o.min_bytes, "smallest size (K, M, G are binary)");
  size("-e,--maxbytes", &o.max_bytes, "largest size");
  size("-i,--stepbytes", &o.step_bytes, "increment between sizes");
  app.add_option("-f,--stepfactor", o.step_factor, "factor between sizes; 1: use the increment")
      ->check(CLI::Range(1, 1 << 20));
}

void add_counts(CLI::App& app, PerfOptions& o) {
  constexpr int kMany = 1 << 30;
  app.add_option("-t,--nthreads", o.n_threads, "ranks as threads of this process (times -g)")
      ->check(CLI::Range(1, 4096));
  app.add_option("-g,--ngpus", o.n_gpus, "ranks per thread (without GPUs: more threads)")
      ->check(CLI::Range(1, 4096));
  app.add_option("-n,--iters", o.iters, "timed iterations")->check(CLI::Range(1, kMany));
  app.add_option("-w,--warmup_iters", o.warmup_iters, "untimed iterations before each placement")
      ->check(CLI::Range(0, kMany));
  app.add_option("-m,--agg_iters", o.agg_iters, "calls in flight together: one iteration")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("-N,--run_cycles", o.run_cycles, "times to run all sizes; 0: until killed")
      ->check(CLI::Range(0, kMany));
  app.add_option("-c,--check", o.check, "checked runs per placement; 0: none")->check(CLI::Range(0, kMany));
  app.add_option("-u,--unalign", o.unalign, "elements by which the buffers miss their alignment")
      ->check(CLI::Range(0, 1 << 16));
  app.add_option("-K,--per_iter_skip", o.per_iter_skip, "iterations left out of the -I statistics")
      ->check(CLI::Range(0, kMany));
}

void add_choices(CLI::App& app, PerfOptions& o) {
  app.add_option("-o,--op", o.op, fmt::format("{} or all", fmt::join(kOpNames, ", ")));
  app.add_option("-d,--datatype", o.datatype,
                 "element type (float, double, half, bfloat16, int32, ...) or all");
  app.add_option("-r,--root", o.root, "root rank; -1: every rank in turn")->check(CLI::Range(-1, 1 << 30));
  app.add_option("-T,--timeout", o.timeout_s, "seconds before a call gives up; 0: TERN_TIMEOUT")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("-C,--report_cputime", o.report_cputime, "processor time instead of wall clock")
      ->type_name("0|1");
  app.add_option("-S,--report_timestamps", o.report_timestamps, "time stamp on each row")->type_name("0|1");
  app.add_option_function<int>(
         "-a,--average", [&o](int which) { o.average = static_cast<Average>(which); },
         "time shown: 0 rank 0's, 1 mean, 2 least, 3 most")
      ->check(CLI::Range(0, 3))
      ->default_str("1");
  app.add_option("-R,--local_register", o.local_register,
                 "buffers from: 0 plain memory, 1 or 2 tern::allocate")
      ->check(CLI::Range(0, 2));
  app.add_option("-M,--memory,--memory_report", o.memory_report, "memory report at the end")
      ->type_name("0|1");
  app.add_option("-I,--per_iter_timing", o.per_iter_timing,
                 "time each iteration (with -m, divided by its calls)")
      ->type_name("0|1");
}

void add_own(CLI::App& app, PerfOptions& o) {
  app.add_option("-J,--output_file,--json", o.json_file, "JSON report; the name must end in .json");
  app.add_option("--codec", o.codec, "NAME[:key=value,...]");
  app.add_option("--algorithm", o.algorithm, "one algorithm, or ranges as in TERN_ALGORITHM");
  app.add_option("--transport", o.transport, "auto, inproc, shm, ucx or tcp");
  app.add_option("--predict", o.predict, "add the planner's predicted time to each placement")
      ->type_name("0|1");
}

Status check_together(const PerfOptions& o) {
  if (o.min_bytes > o.max_bytes)
    return error(Code::kInvalidArgument, "--minbytes {} is above --maxbytes {}", format_size(o.min_bytes),
                 format_size(o.max_bytes));
  if (o.max_bytes > 1ULL << 40)
    return error(Code::kInvalidArgument, "--maxbytes {} is above 1T", format_size(o.max_bytes));
  if (o.step_factor == 1 && o.step_bytes == 0 && o.min_bytes < o.max_bytes)
    return error(Code::kInvalidArgument, "--stepbytes 0 would never reach --maxbytes {}",
                 format_size(o.max_bytes));
  if (o.step_factor > 1 && o.min_bytes == 0)
    return error(Code::kInvalidArgument, "--minbytes 0 stays 0 when multiplied by --stepfactor {}",
                 o.step_factor);
  if (!o.json_file.empty() && !o.json_file.ends_with(".json"))
    return error(Code::kInvalidArgument, "the JSON file '{}' must have a name that ends in .json",
                 o.json_file);
  if (o.per_iter_timing && o.per_iter_skip >= o.iters)
    return error(Code::kInvalidArgument, "--per_iter_skip {} leaves none of the {} iterations",
                 o.per_iter_skip, o.iters);
  return {};
}

}  // namespace

Result<PerfCommand> parse_perf_options(std::span<const char* const> args) {
  PerfCommand command;
  CLI::App app("Times and checks a collective; flags and output are those of nccl-tests 2.19.",
               args.empty() ? "perf" : std::string(args[0]));
  prepare_flags(app);
  add_sizes(app, command.options);
  add_counts(app, command.options);
  add_choices(app, command.options);
  add_own(app, command.options);
  std::vector<std::string> ignored(kInertFlags.size());
  for (size_t i = 0; i < kInertFlags.size(); ++i) {
    app.add_option(std::string(kInertFlags[i].names), ignored[i],
                   fmt::format("accepted, no effect here: {}", kInertFlags[i].doc));
  }
  TERN_ASSIGN(command.help, parse_flags(app, args));
  if (!command.help.empty()) return command;
  for (size_t i = 0; i < kInertFlags.size(); ++i) {
    if (!ignored[i].empty() && ignored[i] != "0") command.without_effect.emplace_back(kInertFlags[i].names);
  }
  TERN_TRY(check_together(command.options));
  return command;
}

}  // namespace tern::bench
