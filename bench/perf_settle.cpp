#include "bench/perf_settle.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/bootstrap/launch.h"
#include "runtime/plan/rules.h"

namespace tern::bench {
namespace {

/// The same error as that of a flag.
Error of_flag(std::string_view flag, std::string_view value, const Error& problem) {
  return error(Code::kInvalidArgument, "{} {}: {}", flag, value, problem.message);
}

/// What the runtime allows, and the flag's own word.
Error or_all(Error problem) {
  problem.message += " or all";
  return problem;
}

/// Ranks that there will be. The launcher's word is not checked here: making the world does that.
Result<int> count_ranks(const PerfOptions& o) {
  const Result<Launch> launch = detect_launch(environment);
  const int n_processes = launch.ok() ? launch->size : 1;
  const int n_threads = o.n_ranks_in_process();
  if (n_processes == 1 || n_threads == 1) return n_processes * n_threads;
  return error(
      Code::kInvalidArgument,
      "--nthreads {} x --ngpus {} makes ranks of threads, which works in one process, but {} were started; "
      "start {} processes instead",
      o.n_threads, o.n_gpus, n_processes, n_processes * n_threads);
}

Status take_transport(const PerfOptions& o, Config& config) {
  if (o.transport.empty()) return {};
  if (config.set("transport", o.transport).ok()) return {};
  std::string_view allowed;
  for (const Setting& row : kSettings)
    if (row.field == "transport") allowed = row.allowed;
  return error(Code::kInvalidArgument, "--transport {}: there is no such transport; allowed: {}", o.transport,
               allowed);
}

std::string that_encode() {
  std::vector<std::string_view> names;
  for (const Algorithm& row : algorithms())
    if (row.can_encode()) names.push_back(row.name);
  return fmt::format("those that can: {}", fmt::join(names, ", "));
}

Status take_algorithm(const PerfOptions& o, const PerfCollective& collective, PerfSettings& settings) {
  if (o.algorithm.empty()) return {};
  if (is_rules(o.algorithm)) {
    const auto rules = parse_algorithm_rules(o.algorithm);
    if (!rules.ok()) return of_flag("--algorithm", o.algorithm, rules.error());
    return settings.config.set("algorithm", o.algorithm);
  }
  const auto choice = parse_algorithm_choice(o.algorithm);
  if (!choice.ok()) return of_flag("--algorithm", o.algorithm, choice.error());
  if (!choice->algorithm->supports({.collective = collective.collective})) {
    return error(Code::kInvalidArgument, "--algorithm {}: {} has no {}", o.algorithm, choice->algorithm->name,
                 collective.name);
  }
  const bool encodes = !o.codec.empty() && !settings.codec.is_dense() && !settings.codec.is_automatic;
  if (encodes && !choice->algorithm->can_encode()) {
    return error(Code::kInvalidArgument, "--algorithm {}: {} cannot carry --codec {}; {}", o.algorithm,
                 choice->algorithm->name, o.codec, that_encode());
  }
  settings.algorithm = o.algorithm;
  return {};
}

Status take_codec(const PerfOptions& o, const PerfCollective& collective, PerfSettings& settings) {
  const Result<CodecChoice> codec = parse_codec_choice(o.codec.empty() ? settings.config.codec : o.codec);
  const std::string_view from = o.codec.empty() ? "TERN_CODEC" : "--codec";
  if (!codec.ok()) return of_flag(from, o.codec.empty() ? settings.config.codec : o.codec, codec.error());
  settings.codec = *codec;
  if (!o.codec.empty() && !codec->is_dense() && !collective.encodes()) {
    return error(Code::kInvalidArgument,
                 "--codec {}: codecs apply to all_reduce and reduce_scatter, not to {}", o.codec,
                 collective.name);
  }
  return {};
}

Result<std::vector<Dtype>> dtypes_of(const PerfOptions& o) {
  std::vector<Dtype> dtypes;
  if (o.datatype == "all") {
    dtypes.reserve(kDtypes.size());
    for (const DtypeInfo& row : kDtypes) dtypes.push_back(row.dtype);
    return dtypes;
  }
  const Result<Dtype> dtype = parse_dtype(o.datatype);
  if (!dtype.ok()) return of_flag("--datatype", o.datatype, or_all(dtype.error()));
  dtypes.push_back(*dtype);
  return dtypes;
}

Result<std::vector<Op>> ops_of(const PerfOptions& o, const PerfCollective& collective) {
  std::vector<Op> ops;
  if (!collective.reduces) return std::vector<Op>{Op::kSum};
  if (o.op == "all") {
    ops.reserve(kOpNames.size());
    for (size_t i = 0; i < kOpNames.size(); ++i) ops.push_back(static_cast<Op>(i));
    return ops;
  }
  const Result<Op> op = parse_op(o.op);
  if (!op.ok()) return of_flag("--op", o.op, or_all(op.error()));
  ops.push_back(*op);
  return ops;
}

Result<std::vector<int>> roots_of(const PerfOptions& o, const PerfCollective& collective, int n_ranks) {
  if (collective.rooted && o.root >= n_ranks)
    return error(Code::kInvalidArgument, "--root {} is not a rank of a world of {}", o.root, n_ranks);
  std::vector<int> roots = {std::max(o.root, 0)};
  if (collective.rooted && o.root < 0)
    for (int r = 1; r < n_ranks; ++r) roots.push_back(r);
  return roots;
}

}  // namespace

Result<PerfSettings> settle(const PerfOptions& options, const PerfCollective& collective, Config config) {
  PerfSettings settings;
  settings.config = std::move(config);
  TERN_TRY(take_transport(options, settings.config));
  TERN_TRY(take_codec(options, collective, settings));
  TERN_TRY(take_algorithm(options, collective, settings));
  TERN_ASSIGN(settings.dtypes, dtypes_of(options));
  TERN_ASSIGN(settings.ops, ops_of(options, collective));
  TERN_ASSIGN(const int n_ranks, count_ranks(options));
  TERN_ASSIGN(settings.roots, roots_of(options, collective, n_ranks));
  // Room for both buffers of the largest row, and as much again for what collectives take.
  settings.config.heap_bytes =
      std::max<uint64_t>(settings.config.heap_bytes, 4 * options.max_bytes + (64U << 20));
  return settings;
}

}  // namespace tern::bench
