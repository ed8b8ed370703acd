#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/q8_body.cuh"

namespace tern::cuda {

int enqueue(Stream stream, const Q8Encode& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const Q8Decode& args) {
  return enqueue_kernel(stream, args);
}

}  // namespace tern::cuda
