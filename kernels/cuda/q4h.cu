#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/q4h_body.cuh"

namespace tern::cuda {

int enqueue(Stream stream, const Q4hEncode& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const Q4hDecode& args) {
  return enqueue_kernel(stream, args);
}

}  // namespace tern::cuda
