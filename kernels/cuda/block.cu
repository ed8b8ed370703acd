#include "kernels/cuda/block_body.cuh"
#include "kernels/cuda/enqueue.cuh"

namespace tern::cuda {

#define ROW(Format, name)                                       \
  int enqueue(Stream stream, const BlockEncode<Format>& args) { \
    return enqueue_kernel(stream, args);                        \
  }                                                             \
  int enqueue(Stream stream, const BlockDecode<Format>& args) { \
    return enqueue_kernel(stream, args);                        \
  }
#include "kernels/cuda/block_formats.def"
#undef ROW

}  // namespace tern::cuda
