// Tensors in files, as Hugging Face's safetensors format lays them out.
//
// u64 header length | JSON header {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {text: text}}
// | bytes. Offsets are relative to the bytes, which the tensors cover without holes or overlap. Little
// endian, C order. Source: huggingface/safetensors, format description (2023).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/storage/mapped_file.h"
#include "trainer/storage/output_file.h"

namespace tern::trainer {

/// The format's element types, by its own names.
struct TensorType {
  std::string_view name;
  size_t size;  ///< bytes
};
inline constexpr std::array<TensorType, 15> kTensorTypes = {{{"F64", 8},
                                                             {"F32", 4},
                                                             {"F16", 2},
                                                             {"BF16", 2},
                                                             {"F8_E4M3", 1},
                                                             {"F8_E5M2", 1},
                                                             {"I64", 8},
                                                             {"I32", 4},
                                                             {"I16", 2},
                                                             {"I8", 1},
                                                             {"U64", 8},
                                                             {"U32", 4},
                                                             {"U16", 2},
                                                             {"U8", 1},
                                                             {"BOOL", 1}}};

/// Longest header, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// A tensor to write, or one in a mapped file; `data` belongs to somebody else.
struct TensorView {
  std::string name;
  std::string_view dtype;  ///< one of kTensorTypes' names
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// fp32 values as a tensor.
TensorView float_tensor(std::string name, std::vector<int64_t> shape, std::span<const float> values);

using TensorMetadata = std::map<std::string, std::string>;

/// Writes the tensors in the order given; the header is padded so that the bytes start at a multiple of 8.
/// Errors: kInvalidArgument (a name twice, a type that does not exist, data that does not fit the shape);
/// kIo.
Result<FileId> write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                                 const TensorMetadata& metadata);

/// An open file whose header has been checked. Tensors point into the map.
class SafetensorsFile {
 public:
  /// Errors: kNotFound, kIo; kCorrupt naming the file and, as the format's own library calls it, what is
  /// wrong: HeaderTooSmall, HeaderTooLarge, InvalidHeaderLength, InvalidHeaderStart,
  /// InvalidHeaderDeserialization, TensorInvalidInfo, InvalidOffset, ValidationOverflow,
  /// MetadataIncompleteBuffer.
  static Result<SafetensorsFile> open(const std::string& path);

  /// In the order of their bytes.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }
  const MappedFile& file() const { return file_; }
  /// The tensor with this name, or nullptr.
  const TensorView* find(std::string_view name) const;

  /// The values of an fp32 tensor of `n` elements. Errors: kCorrupt naming file and tensor.
  Result<std::span<const float>> floats(std::string_view name, int64_t n) const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  TensorMetadata metadata_;
};

}  // namespace tern::trainer
