#include "kernels/cuda/convert_body.cuh"
#include "kernels/cuda/enqueue.cuh"

namespace tern::cuda {

int enqueue(Stream stream, const ToBfloat16& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const ToFloat16& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const FromBfloat16& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const FromFloat16& args) {
  return enqueue_kernel(stream, args);
}

}  // namespace tern::cuda
