#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/sign1_body.cuh"

namespace tern::cuda {

int enqueue(Stream stream, const Sign1Encode& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const Sign1Decode& args) {
  return enqueue_kernel(stream, args);
}

}  // namespace tern::cuda
