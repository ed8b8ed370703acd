#include "tests/runtime/codec/message_fuzz.h"

#include "runtime/codec/message.h"
#include "tests/runtime/codec/encoded.h"

namespace tern {
namespace {

constexpr float kGuard = 5.0F;
constexpr size_t kGuardElements = kRunGrain;

/// A payload made of the bytes over and over, behind the header that a sender would write.
std::vector<std::byte> with_header(const test::Message& like, std::span<const std::byte> bytes) {
  std::vector<std::byte> wire(info(like.spec.id).wire_bytes(like.spec, like.dtype, like.n));
  for (size_t i = sizeof(WireHeader); i < wire.size() && !bytes.empty(); ++i)
    wire[i] = bytes[(i - sizeof(WireHeader)) % bytes.size()];
  write_header({.in = {nullptr, like.n, like.dtype}, .wire = wire.data(), .spec = like.spec}, {});
  return wire;
}

void decode_guarded(const test::Message& like, const std::vector<std::byte>& wire) {
  TERN_CHECK(check_header({wire.data(), wire.size(), 0}, {like.spec, {}, like.dtype, like.n}).ok());
  std::vector<float> out(like.n + 2 * kGuardElements, kGuard);
  const std::span<float> inside = std::span(out).subspan(kGuardElements, like.n);
  for (size_t begin = 0; begin < like.n; begin += kRunGrain) {
    const auto run = inside.subspan(begin, std::min(kRunGrain, like.n - begin));
    for (const Decode how : {Decode::kSet, Decode::kAdd})
      info(like.spec.id).decode_run({like.spec, wire.data(), like.n, begin, run, how});
  }
  for (size_t i = 0; i < kGuardElements; ++i)
    TERN_CHECK(out[i] == kGuard && out[out.size() - 1 - i] == kGuard);
  std::vector<std::byte> elements(like.n * size_of(like.dtype));
  tern::decode(like.spec, wire.data(), {elements.data(), like.n, like.dtype});
}

}  // namespace
}  // namespace tern

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  using namespace tern;  // NOLINT(google-build-using-namespace): the one function of this file
  if (n_bytes < 4) return 0;
  static const std::vector<CodecSpec> specs = test::all_specs();
  test::Message like;
  like.spec = specs[data[0] % specs.size()];
  like.dtype = test::kEncodable[data[1] % std::size(test::kEncodable)];
  like.n = (data[2] | static_cast<size_t>(data[3]) << 8) % 10000;
  const auto bytes = std::as_bytes(std::span(data, n_bytes)).subspan(4);
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());  // reading past its end is seen
  if (const Status status =
          check_header({exact.data(), exact.size(), 3}, {like.spec, {}, like.dtype, like.n});
      !status.ok())
    TERN_CHECK(status.error().rank == 3);
  decode_guarded(like, with_header(like, exact));
  return 0;
}
