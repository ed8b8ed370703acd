#include "bench/kernel_cases.h"

#include <cstdlib>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/reduce.h"
#include "runtime/base/philox.h"
#include "runtime/codec/decode.h"
#include "runtime/codec/runs.h"

namespace tern::bench {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr int kShares = 4;  // of a decode_sum

/// Bell-shaped values of scale 1e-3, like gradients.
void fill_gradient(std::span<float> out, uint64_t seed) {
  Philox random(seed);
  for (float& x : out) {
    float sum = 0;
    for (const uint32_t word : {random.next(), random.next()}) {
      sum += static_cast<float>(word & 0xFFFF) + static_cast<float>(word >> 16) - 65535.0F;
    }
    x = sum * 1e-8F;
  }
}

std::span<const std::byte> bytes_of(const PageBuffer& buffer, size_t n_bytes) {
  return {buffer.bytes(), n_bytes};
}

}  // namespace

PageBuffer::PageBuffer(size_t n_bytes)
    : bytes_(
          static_cast<std::byte*>(std::aligned_alloc(kPageBytes, (n_bytes / kPageBytes + 1) * kPageBytes))) {
  TERN_CHECK(bytes_ != nullptr);
  std::memset(bytes_.get(), 0, n_bytes);
}

void PageBuffer::Free::operator()(std::byte* p) const {
  std::free(p);  // NOLINT(cppcoreguidelines-no-malloc): memory of aligned_alloc
}

PageBuffer& KernelCases::buffer(size_t n_bytes) {
  return *buffers_.emplace_back(std::make_unique<PageBuffer>(n_bytes));
}

KernelCases::KernelCases(size_t n)
    : n_(n),
      n_bytes_(n * sizeof(float)),
      in_(buffer(n_bytes_)),
      residual_(buffer(n_bytes_)),
      out_(buffer(n_bytes_)) {
  fill_gradient({in_.floats(), n}, 1);
  fill_gradient({residual_.floats(), n}, 2);
  cases_.push_back({.kernel = "memcpy",
                    .codec = "none",
                    .n_bytes_moved = 2.0 * static_cast<double>(n_bytes_),
                    .reset = [] {},
                    .run = [this] { std::memcpy(out_.bytes(), in_.bytes(), n_bytes_); },
                    .outputs = {bytes_of(out_, n_bytes_)}});
  cases_.push_back({.kernel = "read",
                    .codec = "none",
                    .n_bytes_moved = static_cast<double>(n_bytes_),
                    .reset = [] {},
                    .run =
                        [this] {
                          max_bits_ = max_magnitude_bits({in_.floats(), n_});
                        },
                    .outputs = {std::as_bytes(std::span(&max_bits_, 1))}});
  cases_.push_back({.kernel = "add",
                    .codec = "none",
                    .n_bytes_moved = 3.0 * static_cast<double>(n_bytes_),
                    .reset = [this] { std::memcpy(out_.bytes(), residual_.bytes(), n_bytes_); },
                    .run =
                        [this] {
                          const void* const srcs[] = {out_.bytes(), in_.bytes()};
                          reduce(Dtype::kFloat32, Op::kSum, out_.bytes(), {srcs, n_});
                        },
                    .outputs = {bytes_of(out_, n_bytes_)}});
}

void KernelCases::add_codec(const CodecSpec& spec, Dtype dtype) {
  add_encode(spec, dtype, false);
  if (info(spec.id).residual != ResidualUse::kNone) add_encode(spec, dtype, true);
  add_decode(spec, dtype);
}

ConstView KernelCases::input(Dtype dtype) {
  if (dtype == Dtype::kFloat32) return {in_.floats(), n_, dtype};
  auto& short_input = short_inputs_[dtype];
  if (short_input == nullptr) {
    short_input = &buffer(n_ * size_of(dtype));
    narrow_run({in_.floats(), n_}, {short_input->bytes(), n_, dtype});
  }
  return {short_input->bytes(), n_, dtype};
}

void KernelCases::add_encode(const CodecSpec& spec, Dtype dtype, bool with_residual) {
  const CodecInfo& row = info(spec.id);
  const ConstView in = input(dtype);
  const size_t n_wire_bytes = row.wire_bytes(spec, dtype, n_);
  PageBuffer& wire = buffer(n_wire_bytes);
  PageBuffer* residual = with_residual ? &buffer(n_bytes_) : nullptr;
  KernelCase c{
      .kernel = with_residual ? "encode_residual" : "encode",
      .codec = to_string(spec),
      .dtype = dtype,
      .n_bytes_moved = static_cast<double>(in.n_bytes() + (with_residual ? 2 * n_bytes_ : 0) + n_wire_bytes),
      .reset =
          [this, residual] {
            if (residual != nullptr) std::memcpy(residual->bytes(), residual_.bytes(), n_bytes_);
          },
      .run =
          [in, spec, &row, &wire, residual] {
            row.encode({.in = in,
                        .residual = residual != nullptr ? residual->floats() : nullptr,
                        .wire = wire.bytes(),
                        .spec = spec});
          },
      .outputs = {bytes_of(wire, n_wire_bytes)}};
  if (with_residual) c.outputs.push_back(bytes_of(*residual, n_bytes_));
  cases_.push_back(std::move(c));
}

void KernelCases::add_decode(const CodecSpec& spec, Dtype dtype) {
  const CodecInfo& row = info(spec.id);
  const size_t n_wire_bytes = row.wire_bytes(spec, dtype, n_);
  PageBuffer& wire = buffer(n_wire_bytes);
  row.encode({.in = input(dtype), .wire = wire.bytes(), .spec = spec});
  const auto n_wire = static_cast<double>(n_wire_bytes);
  const View out(out_.bytes(), n_, dtype);
  const auto n_decoded = static_cast<double>(out.n_bytes());
  const auto add = [&](std::string_view kernel, double n_bytes_moved, std::function<void()> run) {
    cases_.push_back({.kernel = std::string(kernel),
                      .codec = to_string(spec),
                      .dtype = dtype,
                      .n_bytes_moved = n_bytes_moved,
                      .reset = [this] { std::memcpy(out_.bytes(), residual_.bytes(), n_bytes_); },
                      .run = std::move(run),
                      .outputs = {bytes_of(out_, out.n_bytes())}});
  };
  add("decode", n_wire + n_decoded, [spec, &wire, out] { decode(spec, wire.bytes(), out); });
  add("decode_sum", kShares * n_wire + n_decoded, [spec, &wire, out] {
    const std::vector<Share> shares(kShares, {.wire = wire.bytes()});
    decode_sum(spec, shares, out);
  });
  cases_.back().n_srcs = kShares;
  if (dtype != Dtype::kFloat32) return;
  // topk reads and writes 8 bytes per entry that it kept, and nothing else of the output.
  const double n_entries =
      spec.id == CodecId::kTopk ? static_cast<double>(n_) * spec.k / 4096 : static_cast<double>(n_);
  add("decode_accumulate", n_wire + 8 * n_entries, [this, spec, &row, &wire] {
    row.decode_run(
        {.spec = spec, .wire = wire.bytes(), .n = n_, .out = {out_.floats(), n_}, .how = Decode::kAdd});
  });
}

void KernelCases::add_reduce(Dtype dtype, int n_srcs) {
  const size_t n_bytes = n_ * size_of(dtype);
  std::vector<const void*> srcs;
  for (int s = 0; s < n_srcs; ++s) {
    PageBuffer& src = buffer(n_bytes_);
    fill_gradient({src.floats(), n_}, 10 + static_cast<uint64_t>(s));
    if (dtype ==
        Dtype::kBfloat16) {  // the upper halves, in place: element i is read before it is overwritten
      auto* to = reinterpret_cast<Bfloat16*>(src.bytes());
      for (size_t i = 0; i < n_; ++i) to[i] = to_bfloat16(src.floats()[i]);
    }
    srcs.push_back(src.bytes());
  }
  cases_.push_back({.kernel = "reduce",
                    .codec = "none",
                    .dtype = dtype,
                    .n_srcs = n_srcs,
                    .n_bytes_moved = static_cast<double>(n_bytes) * (n_srcs + 1),
                    .reset = [] {},
                    .run =
                        [this, dtype, srcs] {
                          reduce(dtype, Op::kSum, out_.bytes(), {srcs, n_});
                        },
                    .outputs = {bytes_of(out_, n_bytes)}});
}

}  // namespace tern::bench
