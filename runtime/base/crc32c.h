// CRC32C (Castagnoli): the checksum of wire headers, checkpoints and cached files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// CRC32C of `bytes`, continued from `crc` (the value for what came before, 0 at the start):
/// crc32c(b, crc32c(a)) == crc32c(ab).
///
/// Cost:   one pass; SSE4.2's instruction where the processor has it, else eight table look-ups per 8 bytes.
/// Source: RFC 3720 appendix B.4 (polynomial 0x1EDC6F41); Kounavis & Berry, ISCC 2005 (slicing by 8).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// The table version, on any processor; the reference of the tests.
uint32_t crc32c_software(std::span<const std::byte> bytes, uint32_t crc = 0);

using Crc32cFunction = uint32_t (*)(std::span<const std::byte> bytes, uint32_t crc);
/// This processor's instruction, or nullptr (crc32c_sse42.cpp or crc32c_none.cpp, chosen by CMake).
Crc32cFunction crc32c_hardware();

}  // namespace tern
