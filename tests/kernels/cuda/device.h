// Runs a CUDA kernel in a test: on the interpreter under one of several schedules, or on the GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <string>
#include <vector>

#include "kernels/cuda/launchers.h"
#include "kernels/cuda/memory.h"
#include "kernels/simt/launch.h"

namespace tern::cuda::test {

struct Machine {
  bool gpu = false;
  uint64_t seed = 0;  ///< the interpreter's schedule
};

inline std::string name(const Machine& machine) {
  return machine.gpu ? "Gpu" : "Schedule" + std::to_string(machine.seed);
}
inline std::string machine_name(const testing::TestParamInfo<Machine>& info) {
  return name(info.param);
}
inline void PrintTo(const Machine& machine, std::ostream* out) {
  *out << name(machine);
}

std::byte* bytes(auto* data) {
  return reinterpret_cast<std::byte*>(data);
}
const std::byte* bytes(const auto* data) {
  return reinterpret_cast<const std::byte*>(data);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  const auto bits = [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), bits);
}

/// A test that runs once per machine; on the GPU it is skipped where there is none.
class OnEveryMachine : public testing::TestWithParam<Machine> {
 protected:
  void SetUp() override {
    if (GetParam().gpu && !why_not().empty()) GTEST_SKIP() << why_not();
  }
};

/// The buffers and the launch of one kernel.
class Device {
 public:
  explicit Device(const Machine& machine) : machine_(machine) {}

  /// Where the kernel finds the elements from `skip` on; nothing before them may be touched. Written ones are
  /// in `host` after run().
  template <class T>
  T* buffer(std::string name, std::vector<T>& host, size_t skip = 0) {
    const auto bytes = std::as_writable_bytes(std::span(host));
    if (machine_.gpu) return reinterpret_cast<T*>(copy_to_gpu(bytes)) + skip;
    memory_.add(std::move(name), std::span(host).subspan(skip));
    return host.data() + skip;
  }
  /// The same for what the kernel only reads.
  template <class T>
  const T* input(std::string name, const std::vector<T>& host, size_t skip = 0) {
    const auto bytes = std::as_bytes(std::span(host));
    if (machine_.gpu) return reinterpret_cast<const T*>(copy_in(bytes)) + skip;
    memory_.add_input(std::move(name), std::span<const T>(host).subspan(skip));
    return host.data() + skip;
  }

  template <class Args>
  Status run(const Args& args) {
    return run(args, args);
  }
  /// `kernel_args`: what the launcher of `args` hands to the kernel, for the interpreter.
  template <class Args, class KernelArgs>
  Status run(const Args& args, const KernelArgs& kernel_args) {
    if (args.wrong() != nullptr) return error(Code::kInvalidArgument, "{}", args.wrong());
    if (!machine_.gpu)
      return simt::run({shape(kernel_args), &memory_, machine_.seed}, [&] { body(kernel_args); });
    TERN_TRY(launch(nullptr, args));
    for (const Copy& copy : copies_) TERN_TRY(copy.device.copy_out(copy.host));
    return {};
  }

 private:
  struct Copy {
    DeviceMemory device;
    std::span<std::byte> host;  // empty: only read
  };
  void* copy_in(std::span<const std::byte> bytes, std::span<std::byte> back = {}) {
    auto device = DeviceMemory::create(bytes.size() + 1);
    EXPECT_TRUE(device.ok()) << device.error().message;
    const Copy& copy = copies_.emplace_back(Copy{std::move(device).value(), back});
    EXPECT_TRUE(copy.device.copy_in(bytes).ok());
    return copy.device.data();
  }
  void* copy_to_gpu(std::span<std::byte> bytes) { return copy_in(bytes, bytes); }

  Machine machine_;
  simt::Memory memory_;
  std::deque<Copy> copies_;
};

}  // namespace tern::cuda::test

#define TERN_ON_EVERY_MACHINE(fixture)                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                                          \
      Machines, fixture,                                                                             \
      testing::Values(tern::cuda::test::Machine{.seed = 0}, tern::cuda::test::Machine{.seed = 1},    \
                      tern::cuda::test::Machine{.seed = 2}, tern::cuda::test::Machine{.gpu = true}), \
      tern::cuda::test::machine_name)
