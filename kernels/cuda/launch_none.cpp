#include "kernels/cuda/launchers.h"
#include "kernels/cuda/memory.h"
#include "runtime/base/status.h"

namespace tern::cuda {

std::string why_not() {
  return "built without CUDA";
}

Result<DeviceMemory> DeviceMemory::create(size_t /*n_bytes*/) {
  return error(Code::kUnsupported, "memory of the GPU: {}", why_not());
}
DeviceMemory::~DeviceMemory() = default;
Status DeviceMemory::copy_in(std::span<const std::byte> /*from*/) const {
  return create(0).status();
}
Status DeviceMemory::copy_out(std::span<std::byte> /*to*/) const {
  return create(0).status();
}

#define ROW(Args, name, per_thread, bytes_moved)                            \
  Status launch(Stream /*stream*/, const Args& /*args*/) {                  \
    return error(Code::kUnsupported, "{} on the GPU: {}", name, why_not()); \
  }
#include "kernels/cuda/launchers.def"
#undef ROW

}  // namespace tern::cuda
