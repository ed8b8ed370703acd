// The speeds of this world's machines: built in, or as `tern calibrate` measured them.
//
//   { "shared_memory": { "alpha_us": 0.15, "gb_per_s": 14 }, "loopback": { "alpha_us": 12, "gb_per_s": 2.5 },
//     "network": { "alpha_us": 25, "gb_per_s": 1.2 }, "copy_gb_per_s": 14, "reduce_gb_per_s": 12, "far": 2.2,
//     "codecs": { "q8": { "encode_gb_per_s": 11, "decode_gb_per_s": 18 } } }
//
// Speeds are 10^9 byte/s, those of codecs of fp32 elements. What is absent keeps its built-in value. All
// ranks must read equal files, since all must decide alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/codec/codec.h"
#include "runtime/plan/simulate.h"

namespace tern {

/// By CodecId.
using CodecSpeeds = std::vector<CodecSpeed>;

struct Calibration {
  Link shared_memory;      ///< between ranks of a host; the receiver reads
  Link loopback;           ///< the same through the network stack
  Link network;            ///< between hosts
  double copy_beta = 0;    ///< s per byte, within a core's cache; see CostModel
  double reduce_beta = 0;  ///< s per byte of two operands, within a core's cache
  double far = 1;          ///< times as much beyond the cache
  CodecSpeeds codecs;
};

/// What bench/transport_perf and codec_perf measured on a 2-core Xeon (AVX-512).
Calibration built_in_calibration();

/// Errors: kInvalidArgument with line and column, or the key, its value and what is allowed.
Result<Calibration> parse_calibration(std::string_view text, std::string_view origin);
std::string to_json(const Calibration& calibration);

/// The file that TERN_CALIBRATION names, or what is built in. Errors: kNotFound, kIo, those of parsing.
Result<Calibration> calibration_of(const Config& config);

}  // namespace tern
