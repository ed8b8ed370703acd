// Clusters as JSON.
//
//   { "name": "a100x8-8nic-200g", "source": "where the figures come from", "ranks": 1024,
//     "device": { "name": "A100", "copy_gb_per_s": 200, "reduce_gb_per_s": 140, "encode_gb_per_s": 340,
//                 "decode_gb_per_s": 190, "tflops": 312 },
//     "message_overhead_us": 0.3, "round_overhead_us": 1,
//     "levels": [
//       { "name": "gpu", "size": 1,
//         "link": { "name": "nvlink", "gb_per_s": 250, "alpha_us": 2, "inside_only": true } },
//       { "name": "node", "size": 8,
//         "link": { "name": "nic", "count": 8, "gb_per_s": 23.5, "alpha_us": 6 } } ] }
//
// Speeds are 10^9 byte/s of one link in one direction. Optional: "count" (1), "duplex" ("full" or "half"),
// "inside_only" (false), "tflops", both overheads (0). Comments are allowed. What the words mean: cluster.h.
#pragma once

#include <string>
#include <string_view>

#include "runtime/topology/cluster.h"

namespace tern {

/// The cluster that `text` describes, prepared. origin: what the text is, for error sentences.
/// Errors: kInvalidArgument with line and column of a syntax error, or the path of a key that is unknown,
///         missing, twice there, of the wrong kind or out of range, with what is allowed.
Result<Cluster> parse_cluster(std::string_view text, std::string_view origin);

/// The same from a file. Errors: kNotFound, kIo, kInvalidArgument.
Result<Cluster> read_cluster(const std::string& path);

}  // namespace tern
