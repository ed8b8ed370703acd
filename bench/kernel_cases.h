// The kernels that codec_perf times, each with its inputs, the bytes it must move and a way to check what it
// wrote.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/codec/codec.h"

namespace tern::bench {

/// Page-aligned bytes, touched once.
class PageBuffer {
 public:
  explicit PageBuffer(size_t n_bytes);
  std::byte* bytes() const { return bytes_.get(); }
  float* floats() const { return reinterpret_cast<float*>(bytes_.get()); }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

struct KernelCase {
  std::string kernel;  ///< memcpy, read, add, encode, encode_residual, decode, decode_sum,
                       ///< decode_accumulate, reduce
  std::string codec;   ///< "none" for those without one
  Dtype dtype = Dtype::kFloat32;
  int n_srcs = 0;               ///< reduce and decode_sum only
  double n_bytes_moved = 0;     ///< that any implementation must read and write
  std::function<void()> reset;  ///< puts the inputs that run() changes back to their first state
  std::function<void()> run;
  std::vector<std::span<const std::byte>> outputs;
};

/// Builds the cases and owns their buffers. All take n elements.
class KernelCases {
 public:
  /// Starts with the measures of the memory: memcpy, read (one stream) and add (two read, one of them
  /// written).
  explicit KernelCases(size_t n);
  void add_codec(const CodecSpec& spec, Dtype dtype);
  void add_reduce(Dtype dtype, int n_srcs);

  static constexpr size_t kMemoryCases = 3;
  const std::vector<KernelCase>& all() const { return cases_; }
  size_t n() const { return n_; }

 private:
  PageBuffer& buffer(size_t n_bytes);
  void add_encode(const CodecSpec& spec, Dtype dtype, bool with_residual);
  void add_decode(const CodecSpec& spec, Dtype dtype);
  /// The gradient as elements of this type.
  ConstView input(Dtype dtype);

  size_t n_;
  size_t n_bytes_;
  std::vector<std::unique_ptr<PageBuffer>> buffers_;
  std::map<Dtype, PageBuffer*> short_inputs_;
  PageBuffer& in_;
  PageBuffer& residual_;  ///< never changed; residuals start as copies of it
  PageBuffer& out_;
  uint32_t max_bits_ = 0;
  std::vector<KernelCase> cases_;
};

}  // namespace tern::bench
