#include "bench/perf_measure.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <numeric>

#include "bench/perf_gradient.h"
#include "bench/perf_pattern.h"

namespace tern::bench {
namespace {

/// -a: one number of the ranks' numbers.
double average_over(const std::vector<std::vector<double>>& ranks, size_t column, Average how) {
  std::vector<double> values;
  values.reserve(ranks.size());
  for (const std::vector<double>& rank : ranks) values.push_back(rank[column]);
  switch (how) {
    case Average::kRank0:
      return values.front();
    case Average::kMin:
      return *std::min_element(values.begin(), values.end());
    case Average::kMax:
      return *std::max_element(values.begin(), values.end());
    case Average::kMean:
      break;
  }
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double sum_over(const std::vector<std::vector<double>>& ranks, size_t column) {
  double sum = 0;
  for (const std::vector<double>& rank : ranks) sum += rank[column];
  return sum;
}

/// The error of a call that nobody asked for, with what it is for.
Status unasked(const Status& status, std::string_view when, const PerfCollective& collective) {
  if (status.ok()) return {};
  Error told = status.error();
  told.message = fmt::format("{} {}: {}", when, collective.name, told.message);
  return told;
}

double seconds_on(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// "VmHWM:   1234 kB" of /proc/self/status, in bytes; 0 where there is none.
double peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

Result<PerfRank> PerfRank::create(Communicator& comm, const Setup& setup) {
  PerfRank rank(comm, setup);
  const PerfBuffer::Shape shape = {.n_bytes = setup.most_bytes,
                                   .offset = static_cast<size_t>(setup.options->unalign) * setup.unalign_unit,
                                   .shared = setup.options->shared_memory()};
  TERN_ASSIGN(rank.send_, PerfBuffer::create(comm, shape));
  TERN_ASSIGN(rank.recv_, PerfBuffer::create(comm, shape));
  return rank;
}

double PerfRank::now() const {
  if (!setup_.options->report_cputime) return Seconds(Clock::now().time_since_epoch()).count();
  // Ranks that are threads of one process share its processor clock; their progress threads are then left
  // out.
  return seconds_on(comm_->world().in_process ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID);
}

PerfShape PerfRank::shape_of(const RowRequest& request) const {
  return {.count = count_for(*setup_.collective, request.n_bytes, request.dtype, comm_->size()),
          .rank = comm_->rank(),
          .n_ranks = comm_->size(),
          .root = request.root};
}

PerfRank::Placement PerfRank::placement(const RowRequest& request, bool in_place) {
  const PerfCollective& row = *setup_.collective;
  const PerfShape shape = shape_of(request);
  const size_t size = size_of(request.dtype);
  PerfBuffer& from = in_place ? *recv_ : *send_;
  const size_t send_at = in_place ? row.send_offset(shape) * size : 0;
  const size_t recv_at = in_place ? row.recv_offset(shape) * size : 0;
  Placement at;
  at.in_place = in_place;
  at.send = {from.data() + send_at, row.n_send(shape), request.dtype};
  at.recv = {recv_->data() + recv_at, row.n_recv(shape), request.dtype};
  at.whole = &*recv_;
  at.whole_bytes = in_place ? std::max(at.send.n, at.recv.n) * size : at.recv.n_bytes();
  return at;
}

PerfCall PerfRank::call_on(const RowRequest& request, const Placement& at) {
  PerfCall call = {
      .send = at.send, .recv = at.recv, .op = request.op, .root = request.root, .options = setup_.call};
  call.options.factor = premul_factor(comm_->rank());
  if (setup_.collective->counts != nullptr) {
    counts_ = setup_.collective->counts(shape_of(request));
    call.counts = counts_;
  }
  if (has_residual(request)) {
    residual_.assign(at.send.n, 0.0F);
    call.options.residual = residual_.data();
  }
  return call;
}

bool PerfRank::may_encode(const RowRequest& request) const {
  return !setup_.codec.is_dense() && setup_.collective->encodes() && is_encodable(request.dtype) &&
         (request.op == Op::kSum || request.op == Op::kAvg);
}

bool PerfRank::lossy(const RowRequest& request) const {
  return may_encode(request) && codec_.id != CodecId::kNone;
}

// Auto may take biased codecs only where it is told that some loss is fine.
bool PerfRank::has_residual(const RowRequest& request) const {
  if (setup_.codec.is_automatic) return may_encode(request) && setup_.codec.max_loss_gap > 0;
  return lossy(request) && info(codec_.id).residual == ResidualUse::kMandatory;
}

// Auto's choice is the same in every call of a row: one call tells it.
Status PerfRank::settle_codec(const RowRequest& request) {
  codec_ = setup_.codec.is_automatic ? CodecSpec() : setup_.codec.spec;
  if (!setup_.codec.is_automatic || !may_encode(request)) return {};
  const Placement at = placement(request, false);
  const std::vector<Operation> operations = operations_of(call_on(request, at), 1);
  prepare(at, *data_for(request, 0));
  CallReport report;
  TERN_TRY(iterate(operations, report));
  codec_ = report.codec;
  return {};
}

std::unique_ptr<TestData> PerfRank::data_for(const RowRequest& request, uint64_t seed) const {
  if (lossy(request))
    return std::make_unique<GradientData>(GradientData::Key{.codec = codec_,
                                                            .dtype = request.dtype,
                                                            .op = request.op,
                                                            .n_ranks = comm_->size(),
                                                            .seed = seed});
  return std::make_unique<Pattern>(
      Pattern::Key{.dtype = request.dtype, .op = request.op, .n_ranks = comm_->size(), .seed = seed});
}

void PerfRank::prepare(const Placement& at, const TestData& data) {
  constexpr int kPoison = 0xDB;  // a result that was never written is wrong in every dtype
  at.whole->raise_fences(at.whole_bytes);
  if (at.whole_bytes > 0) std::memset(at.whole->data(), kPoison, at.whole_bytes);
  data.fill(comm_->rank(), at.send.n, const_cast<void*>(at.send.data));
  std::fill(residual_.begin(), residual_.end(), 0.0F);
}

std::vector<Operation> PerfRank::operations_of(const PerfCall& call, int n_calls) const {
  std::vector<Operation> operations;
  for (int i = 0; i < n_calls; ++i) setup_.collective->append(call, operations);
  return operations;
}

Status PerfRank::meet() {
  return unasked(comm_->barrier(), "in the barrier before", *setup_.collective);
}

Status PerfRank::iterate(const std::vector<Operation>& operations, CallReport& report) {
  TERN_TRY(comm_->run_group(operations));
  report = comm_->last_report();
  return {};
}

Result<PerfRank::Timing> PerfRank::time(const RowRequest& request, const Placement& at) {
  const PerfOptions& o = *setup_.options;
  const std::vector<Operation> operations = operations_of(call_on(request, at), o.agg_iters);
  const std::unique_ptr<TestData> data = data_for(request, 0);
  Timing timing;
  prepare(at, *data);
  for (int i = 0; i < o.warmup_iters; ++i) TERN_TRY(iterate(operations, timing.report));
  // In place, sums grow with every call; a codec would soon see infinities, so its data is renewed off the
  // clock.
  const bool renew = at.in_place && lossy(request);
  const bool each = o.per_iter_timing || renew;
  TERN_TRY(meet());
  const double begun = now();
  for (int i = 0; i < o.iters; ++i) {
    if (renew) {
      prepare(at, *data);
      TERN_TRY(meet());
    }
    const double iteration_begun = each ? now() : 0;
    TERN_TRY(iterate(operations, timing.report));
    if (each) timing.iterations.push_back((now() - iteration_begun) / o.agg_iters);
  }
  timing.seconds = (now() - begun) / o.iters / o.agg_iters;
  if (renew)
    timing.seconds = std::accumulate(timing.iterations.begin(), timing.iterations.end(), 0.0) / o.iters;
  if (!o.per_iter_timing)
    timing.iterations.clear();
  else
    timing.iterations.erase(timing.iterations.begin(), timing.iterations.begin() + o.per_iter_skip);
  return timing;
}

Result<Verdict> PerfRank::check(const RowRequest& request, const Placement& at) {
  Verdict total;
  const std::vector<Operation> operations = operations_of(call_on(request, at), 1);
  const std::vector<Origin> origins = setup_.collective->origins(shape_of(request));
  for (int i = 0; i < setup_.options->check; ++i) {
    const std::unique_ptr<TestData> data = data_for(request, static_cast<uint64_t>(i) + 1);
    prepare(at, *data);
    TERN_TRY(comm_->run_group(operations));
    const Verdict verdict = data->judge(origins, at.recv.data);
    total.n_wrong += verdict.n_wrong + at.whole->broken_fence_bytes(at.whole_bytes);
    total.error_squared += verdict.error_squared;
    total.exact_squared += verdict.exact_squared;
  }
  return total;
}

Result<std::vector<std::vector<double>>> PerfRank::gather(const std::vector<double>& values) {
  const size_t n = values.size();
  std::vector<double> all(n * static_cast<size_t>(comm_->size()));
  TERN_TRY(unasked(comm_->all_gather(std::span<const double>(values), std::span<double>(all)),
                   "while the ranks' figures are gathered after", *setup_.collective));
  std::vector<std::vector<double>> ranks;
  for (size_t i = 0; i < all.size(); i += n) {
    const double* first = all.data() + i;
    ranks.emplace_back(first, first + n);
  }
  return ranks;
}

Result<PlacementResult> PerfRank::over_ranks(const RowRequest& request, const Local& local) {
  const PerfShape shape = shape_of(request);
  const PerfOptions& o = *setup_.options;
  const Verdict& v = local.verdict;
  TERN_ASSIGN(const auto ranks,
              gather({local.timing.seconds, static_cast<double>(v.n_wrong), v.error_squared, v.exact_squared,
                      static_cast<double>(local.timing.report.bytes_on_wire)}));
  PlacementResult result;
  result.seconds = average_over(ranks, 0, o.average);
  const auto n_bytes =
      static_cast<double>(bytes_of(*setup_.collective, shape.count, request.dtype, shape.n_ranks));
  result.alg_gb_per_s = result.seconds > 0 ? n_bytes / result.seconds / 1e9 : 0;
  result.bus_gb_per_s = result.alg_gb_per_s * setup_.collective->bus_factor(shape.n_ranks);
  if (o.check > 0) result.n_wrong = static_cast<uint64_t>(sum_over(ranks, 1));
  if (const double exact = sum_over(ranks, 3); exact > 0) result.vnmse = sum_over(ranks, 2) / exact;
  result.bytes_on_wire = static_cast<uint64_t>(average_over(ranks, 4, Average::kMax));
  result.predicted_seconds = local.timing.report.predicted_seconds;
  result.algorithm = local.timing.report.algorithm;
  if (o.per_iter_timing) {
    TERN_ASSIGN(result.rank_seconds, gather(local.timing.iterations));
  }
  return result;
}

Result<RowResult> PerfRank::measure(const RowRequest& request) {
  const PerfCollective& collective = *setup_.collective;
  RowResult row;
  row.count = shape_of(request).count;
  row.n_bytes = bytes_of(collective, row.count, request.dtype, comm_->size());
  row.dtype = request.dtype;
  if (collective.reduces) row.op = name(request.op);
  if (collective.rooted) row.root = request.root;
  row.iters = setup_.options->iters;
  TERN_TRY(settle_codec(request));
  row.codec = to_string(may_encode(request) ? codec_ : CodecSpec());
  for (const bool in_place : {false, true}) {
    const Placement at = placement(request, in_place);
    Local local;
    TERN_ASSIGN(local.timing, time(request, at));
    TERN_ASSIGN(local.verdict, check(request, at));
    TERN_ASSIGN((in_place ? row.in_place : row.out_of_place), over_ranks(request, local));
  }
  return row;
}

Result<std::string> PerfRank::memory_report() {
  TERN_ASSIGN(const auto ranks, gather({peak_resident_bytes()}));
  return fmt::format("User buffers {:.1f} MB per rank | Peak resident {:.1f} MB in the largest process",
                     2.0 * static_cast<double>(setup_.most_bytes) / 0x1p20,
                     average_over(ranks, 0, Average::kMax) / 0x1p20);
}

}  // namespace tern::bench
