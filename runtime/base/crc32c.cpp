#include "runtime/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace tern {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82F63B78;
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b] = CRC of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  Tables tables = {};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t shorter = tables[k - 1][b];
      tables[k][b] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();
static_assert(std::endian::native == std::endian::little, "slicing by 8 reads words in little-endian order");

}  // namespace

uint32_t crc32c_software(std::span<const std::byte> bytes, uint32_t crc) {
  crc = ~crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(b)) & 0xFF];
  return ~crc;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  static const Crc32cFunction hardware = crc32c_hardware();
  return hardware != nullptr ? hardware(bytes, crc) : crc32c_software(bytes, crc);
}

}  // namespace tern
