#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/topk_body.cuh"

namespace tern::cuda {

int enqueue(Stream stream, const TopkEncode& args) {
  return enqueue_kernel(stream, args);
}
int enqueue(Stream stream, const TopkDecode& args) {
  return enqueue_kernel(stream, args);
}

}  // namespace tern::cuda
