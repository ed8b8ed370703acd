// What the launchers of kernels/cuda share: the stream, and whether there is a GPU.
//
// A launcher, `launch(stream, args)` of launchers.h, puts one kernel on the caller's stream and returns: it
// allocates nothing, waits for nothing, and does nothing when there are no elements. All pointers in `args`
// are device memory, aligned to their element type (16 bytes is fastest), valid until the kernel has ended.
// The bytes are those of the CPU's kernel of the same name.
//
// Threads: any. Errors: kUnsupported (built without CUDA, or kernels for no architecture of this GPU);
// kInvalidArgument (what args.wrong() says); kInternal (CUDA's own words).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct CUstream_st;  // NOLINT(readability-identifier-naming): CUDA's name
namespace tern {
class Status;  // runtime/base/status.h, which nvcc does not compile
}

namespace tern::cuda {

/// cudaStream_t, without its header; null is the default stream.
using Stream = CUstream_st*;

inline constexpr const char* kMisaligned = "a pointer is not aligned to its element type";
/// Whether every pointer is a multiple of `n_bytes`.
template <class... Pointers>
bool aligned_to(size_t n_bytes, Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % n_bytes == 0) && ...);
}

/// Why no kernel can run here ("built without CUDA", or the driver's reason); empty when one can.
std::string why_not();

}  // namespace tern::cuda
