#include <cstring>

#include "kernels/convert.h"
#include "kernels/scalar.h"

namespace tern::scalar {
namespace {

Bfloat16 element(const std::byte* in, size_t i) {
  Bfloat16 x;
  std::memcpy(&x, in + i * sizeof(x), sizeof(x));
  return x;
}

}  // namespace

bool bf16_encode(std::span<const float> in, std::byte* out) {
  bool non_finite = false;
  for (size_t i = 0; i < in.size(); ++i) {
    const Bfloat16 x = to_bfloat16(in[i]);
    std::memcpy(out + i * sizeof(x), &x, sizeof(x));
    non_finite |= (x.bits & 0x7F80) == 0x7F80;
  }
  return non_finite;
}

void bf16_decode(const std::byte* in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = to_float(element(in, i));
}

void bf16_decode_accumulate(const std::byte* in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] += to_float(element(in, i));
}

}  // namespace tern::scalar
