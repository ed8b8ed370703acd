// Laying out and finishing a message; what the codecs' files share.
#pragma once

#include <cstring>

#include "runtime/codec/codec.h"

namespace tern {

constexpr size_t plane_bytes(size_t n_bytes) {
  return (n_bytes + kPlaneAlignment - 1) / kPlaneAlignment * kPlaneAlignment;
}

/// Hands out the planes of a message one after the other, behind the header.
class PlaneReader {
 public:
  explicit PlaneReader(const std::byte* wire) : at_(wire + sizeof(WireHeader)) {}
  const std::byte* next(size_t n_bytes) {
    const std::byte* plane = at_;
    at_ += plane_bytes(n_bytes);
    return plane;
  }

 private:
  const std::byte* at_;
};

/// The same for writing; the padding of each plane is set to zero.
class PlaneWriter {
 public:
  explicit PlaneWriter(std::byte* wire) : at_(wire + sizeof(WireHeader)) {}
  std::byte* next(size_t n_bytes) {
    std::byte* plane = at_;
    at_ += plane_bytes(n_bytes);
    std::memset(plane + n_bytes, 0, plane_bytes(n_bytes) - n_bytes);
    return plane;
  }

 private:
  std::byte* at_;
};

/// Writes the header of a message whose payload is complete, checksum included.
void write_header(const EncodeArgs& args, const EncodeStats& stats);

}  // namespace tern
