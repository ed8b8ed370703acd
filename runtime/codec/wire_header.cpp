#include "runtime/codec/wire_header.h"

#include <cstring>
#include <limits>

#include "runtime/base/crc32c.h"
#include "runtime/codec/message.h"

namespace tern {
namespace {

uint32_t checksum_of(const std::byte* wire, size_t n_wire_bytes, bool with_payload) {
  const uint32_t of_header = crc32c({wire, offsetof(WireHeader, crc32c)});
  if (!with_payload) return of_header;
  return crc32c({wire + sizeof(WireHeader), n_wire_bytes - sizeof(WireHeader)}, of_header);
}

std::string codec_text(const WireHeader& header) {
  if (header.codec >= codecs().size()) return fmt::format("codec number {}", header.codec);
  return to_string(spec_of(static_cast<CodecId>(header.codec), header.option));
}

std::string dtype_text(uint8_t dtype) {
  return dtype < kDtypes.size() ? std::string(kDtypes[dtype].name) : fmt::format("dtype number {}", dtype);
}

Status check_tag(const WireTag& got, const WireTag& tag, int sender) {
  if (got == tag) return {};
  return error_at(
      sender, Code::kMismatch,
      "rank {} sent a message of step {}, bucket {}, offset {}; expected step {}, bucket {}, offset {}",
      sender, got.step, got.bucket, got.element_offset, tag.step, tag.bucket, tag.element_offset);
}

}  // namespace

WireHeader read_header(const std::byte* wire) {
  WireHeader header;
  std::memcpy(&header, wire, sizeof(header));
  return header;
}

void write_header(const EncodeArgs& args, const EncodeStats& stats) {
  TERN_CHECK(args.in.n <= std::numeric_limits<uint32_t>::max());
  WireHeader header;
  header.codec = static_cast<uint8_t>(args.spec.id);
  header.dtype = static_cast<uint8_t>(args.in.dtype);
  header.flags = static_cast<uint8_t>((stats.non_finite ? kWireNonFinite : 0) |
                                      (stats.n_saturated > 0 ? kWireSaturated : 0) |
                                      (args.checksum ? kWireChecksum : 0));
  header.option = option_number(args.spec);
  header.tag = args.tag;
  header.count = static_cast<uint32_t>(args.in.n);
  std::memcpy(args.wire, &header, sizeof(header));
  const size_t n_wire_bytes = info(args.spec.id).wire_bytes(args.spec, args.in.dtype, args.in.n);
  header.crc32c = checksum_of(args.wire, n_wire_bytes, args.checksum);
  std::memcpy(args.wire + offsetof(WireHeader, crc32c), &header.crc32c, sizeof(header.crc32c));
}

Status check_header(const Received& message, const Expected& expected) {
  const auto& [wire, n_wire_bytes, sender] = message;
  const auto& [spec, tag, dtype, n] = expected;
  if (n_wire_bytes < sizeof(WireHeader)) {
    return error_at(sender, Code::kCorrupt, "rank {} sent {} bytes where a message has a header of {}",
                    sender, n_wire_bytes, sizeof(WireHeader));
  }
  const WireHeader got = read_header(wire);
  if (got.magic != kWireMagic || got.version != kWireVersion) {
    return error_at(sender, Code::kCorrupt,
                    "rank {} sent a message of magic {:#06x} version {}; Tern's is {:#06x} version {}",
                    sender, got.magic, got.version, kWireMagic, kWireVersion);
  }
  if (checksum_of(wire, n_wire_bytes, (got.flags & kWireChecksum) != 0) != got.crc32c) {
    return error_at(sender, Code::kCorrupt,
                    "rank {} sent a message of {} bytes whose checksum {:#010x} does not hold", sender,
                    n_wire_bytes, got.crc32c);
  }
  if (got.codec != static_cast<uint8_t>(spec.id) || got.option != option_number(spec)) {
    return error_at(sender, Code::kMismatch, "rank {} sent a message encoded with {}; expected {}", sender,
                    codec_text(got), to_string(spec));
  }
  if (got.dtype != static_cast<uint8_t>(dtype) || got.count != n) {
    return error_at(sender, Code::kMismatch, "rank {} sent {} elements of {}; expected {} of {}", sender,
                    got.count, dtype_text(got.dtype), n, name(dtype));
  }
  TERN_TRY(check_tag(got.tag, tag, sender));
  const size_t n_expected_bytes = info(spec.id).wire_bytes(spec, dtype, n);
  if (n_wire_bytes != n_expected_bytes) {
    return error_at(sender, Code::kMismatch, "rank {} sent {} bytes for {} elements of {}; expected {}",
                    sender, n_wire_bytes, n, to_string(spec), n_expected_bytes);
  }
  return {};
}

}  // namespace tern
