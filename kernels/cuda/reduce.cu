#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/reduce_body.cuh"

namespace tern::cuda {
namespace {

template <class Args>
int enqueue_typed(Stream stream, const Args& args) {
  return with_type(args.dtype, [&]<class T>(std::type_identity<T>) {
    return enqueue_kernel(stream, Typed<T, Args>{args});
  });
}

}  // namespace

int enqueue(Stream stream, const Reduce& args) {
  return enqueue_typed(stream, args);
}
int enqueue(Stream stream, const Average& args) {
  return enqueue_typed(stream, args);
}
int enqueue(Stream stream, const Scale& args) {
  return enqueue_typed(stream, args);
}

}  // namespace tern::cuda
