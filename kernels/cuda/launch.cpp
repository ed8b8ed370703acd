#include <cuda_runtime_api.h>

#include "kernels/cuda/error.h"
#include "kernels/cuda/launchers.h"
#include "runtime/base/status.h"

namespace tern::cuda {

#define ROW(Args, name, per_thread, bytes_moved) int enqueue(Stream stream, const Args& args);
#include "kernels/cuda/launchers.def"
#undef ROW

Status status_of(int code) {
  const auto error_code = static_cast<cudaError_t>(code);
  if (error_code == cudaSuccess) return {};
  const bool unsupported = error_code == cudaErrorNoKernelImageForDevice || error_code == cudaErrorNoDevice ||
                           error_code == cudaErrorInsufficientDriver;
  return error(unsupported ? Code::kUnsupported : Code::kInternal, "CUDA: {} ({})",
               cudaGetErrorString(error_code), cudaGetErrorName(error_code));
}

#define ROW(Args, name, per_thread, bytes_moved)                                                       \
  Status launch(Stream stream, const Args& args) {                                                     \
    if (const char* wrong = args.wrong()) return error(Code::kInvalidArgument, "{}: {}", name, wrong); \
    return status_of(enqueue(stream, args));                                                           \
  }
#include "kernels/cuda/launchers.def"
#undef ROW

std::string why_not() {
  int n_devices = 0;
  const Status status = status_of(cudaGetDeviceCount(&n_devices));
  if (!status.ok()) return status.error().message;
  return n_devices == 0 ? "CUDA finds no GPU" : "";
}

}  // namespace tern::cuda
