#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "trainer/storage/safetensors.h"

namespace tern::trainer {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors bytes are written as they lie in memory");

Status check(const TensorView& tensor) {
  const auto type = std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                                 [&](const TensorType& candidate) { return candidate.name == tensor.dtype; });
  if (type == kTensorTypes.end()) {
    return error(Code::kInvalidArgument, "tensor {} has the type {}, which safetensors does not know",
                 tensor.name, tensor.dtype);
  }
  uint64_t n = type->size;
  for (const int64_t extent : tensor.shape) n *= static_cast<uint64_t>(extent);
  if (n != tensor.data.size()) {
    return error(Code::kInvalidArgument, "tensor {} has {} bytes where its shape [{}] needs {}", tensor.name,
                 tensor.data.size(), fmt::join(tensor.shape, ", "), n);
  }
  return {};
}

Result<std::string> make_header(std::span<const TensorView> tensors, const TensorMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string_view> names = {"__metadata__"};
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    TERN_TRY(check(tensor));
    if (!names.insert(tensor.name).second) {
      return error(Code::kInvalidArgument, "the tensor name {} comes twice or is reserved", tensor.name);
    }
    const uint64_t end = offset + tensor.data.size();
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  constexpr size_t kAlignment = 8;
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace

TensorView float_tensor(std::string name, std::vector<int64_t> shape, std::span<const float> values) {
  return {std::move(name), "F32", std::move(shape), std::as_bytes(values)};
}

Result<FileId> write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                                 const TensorMetadata& metadata) {
  TERN_ASSIGN(const std::string header, make_header(tensors, metadata));
  TERN_ASSIGN(OutputFile file, OutputFile::create(path));
  const uint64_t length = header.size();
  TERN_TRY(file.write(std::as_bytes(std::span(&length, 1))));
  TERN_TRY(file.write(header));
  for (const TensorView& tensor : tensors) TERN_TRY(file.write(tensor.data));
  return file.close();
}

}  // namespace tern::trainer
