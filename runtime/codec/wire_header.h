// The 32 bytes in front of every encoded message, and the check that a receiver makes before it decodes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/codec/codec_spec.h"

namespace tern {

static_assert(std::endian::native == std::endian::little,
              "wire formats are little endian and written as they lie");

/// What the sender and the receiver agree a message is about; travels in the header.
struct WireTag {
  uint32_t step = 0;            ///< sequence number of the collective or optimiser step
  uint32_t bucket = 0;          ///< which bucket, chunk or segment
  uint64_t element_offset = 0;  ///< of the first element, in the bucket

  bool operator==(const WireTag&) const = default;
};

inline constexpr uint16_t kWireMagic = 0x5254;  // "TR"
inline constexpr uint8_t kWireVersion = 2;
inline constexpr size_t kPlaneAlignment = 16;

enum WireFlag : uint8_t {
  kWireNonFinite = 1,  ///< an element was inf or NaN; its block decodes to NaN
  kWireSaturated = 2,  ///< an element was clamped
  kWireChecksum = 4,   ///< the CRC covers the payload too
};

struct WireHeader {
  uint16_t magic = kWireMagic;
  uint8_t version = kWireVersion;
  uint8_t codec = 0;
  uint8_t dtype = 0;    ///< of the elements: Dtype
  uint8_t flags = 0;    ///< WireFlag
  uint16_t option = 0;  ///< option_number() of the codec's options
  WireTag tag;
  uint32_t count = 0;   ///< elements
  uint32_t crc32c = 0;  ///< of the 28 bytes above and, with kWireChecksum, of the payload
};
static_assert(sizeof(WireHeader) == 32 && offsetof(WireHeader, tag) == 8 &&
              offsetof(WireHeader, crc32c) == 28);

/// An encoded message as it arrived.
struct Received {
  const std::byte* wire = nullptr;
  size_t n_wire_bytes = 0;
  int sender = -1;
};

/// What the receiver of a message expects it to be.
struct Expected {
  CodecSpec spec;
  WireTag tag;
  Dtype dtype = Dtype::kFloat32;
  size_t n = 0;  ///< elements
};

/// Whether a message is what the receiver expects. Nothing behind the header is read unless the sender asked
/// for a checksum.
///
/// Errors, all naming the sender: kCorrupt (too short, another magic or version, a checksum that does not
/// hold: damaged or not Tern's); kMismatch (another codec, option, dtype, count, tag or length, with both
/// values).
Status check_header(const Received& message, const Expected& expected);

/// The header of a message as it lies there; check_header() first.
WireHeader read_header(const std::byte* wire);
/// The type of a message's elements.
inline Dtype dtype_of(const WireHeader& header) {
  return static_cast<Dtype>(header.dtype);
}

}  // namespace tern
