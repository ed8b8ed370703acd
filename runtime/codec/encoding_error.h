// What an encoding lost, measured.
#pragma once

#include "runtime/codec/codec.h"

namespace tern {

/// Squared sums over the elements of encodings; those of blocks that are not finite are left out.
struct EncodingError {
  double lost = 0;   ///< |decoded - x|^2, x with the residual in it where there is one
  double value = 0;  ///< |x|^2

  /// The vector-normalised mean squared error (DRIVE; Vargaftik et al., 2021); 0 of nothing.
  double vnmse() const { return value > 0 ? lost / value : 0; }
  EncodingError& operator+=(const EncodingError& other) {
    lost += other.lost;
    value += other.value;
    return *this;
  }
};

/// Of what encode(args) just did; args.in is still what it was.
/// Cost: a decoding, and one read of the elements and the residual.
EncodingError encoding_error(const EncodeArgs& args);

}  // namespace tern
