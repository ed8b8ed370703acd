// CRC32C by the x86 instruction; whether the processor has it is asked at run time.
#include <nmmintrin.h>

#include <cstring>

#include "runtime/base/crc32c.h"

namespace tern {
namespace {

__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t state = ~crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (const std::byte b : bytes) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(b));
  return ~narrow;
}

}  // namespace

Crc32cFunction crc32c_hardware() {
  return __builtin_cpu_supports("sse4.2") != 0 ? crc32c_sse42 : nullptr;
}

}  // namespace tern
