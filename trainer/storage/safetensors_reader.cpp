#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/base/json_text.h"
#include "trainer/storage/safetensors.h"

namespace tern::trainer {
namespace {

using Json = nlohmann::json;
constexpr size_t kLengthBytes = 8;

struct Header {
  std::vector<TensorView> tensors;
  TensorMetadata metadata;
};

/// Reads one header against the bytes that follow it; every sentence starts with the file's name.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  Result<Header> read() {
    TERN_ASSIGN(const std::string_view text, header_text());
    const std::string origin = path_ + ": InvalidHeaderDeserialization: the header";
    Result<Json> parsed = parse_json(text, origin);
    if (!parsed.ok()) return error(Code::kCorrupt, "{}", parsed.error().message);
    if (!parsed->is_object()) return wrong("InvalidHeaderDeserialization", "the header is not an object");
    buffer_ = file_.subspan(kLengthBytes + text.size());
    Header header;
    for (const auto& [name, entry] : parsed->items()) {
      if (name == "__metadata__") {
        TERN_ASSIGN(header.metadata, metadata(entry));
        continue;
      }
      TERN_ASSIGN(TensorView tensor, tensor_of(name, entry));
      header.tensors.push_back(std::move(tensor));
    }
    TERN_TRY(check_cover(header.tensors));
    return header;
  }

 private:
  template <class... Args>
  Error wrong(std::string_view what, fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kCorrupt, "{}: {}: {}", path_, what, fmt::format(format, std::forward<Args>(args)...));
  }

  Result<std::string_view> header_text() const {
    if (file_.size() < kLengthBytes) {
      return wrong("HeaderTooSmall", "the file holds {} bytes, fewer than the header's length takes",
                   file_.size());
    }
    uint64_t length = 0;
    std::memcpy(&length, file_.data(), kLengthBytes);
    if (length > kMaxSafetensorsHeader) {
      return wrong("HeaderTooLarge", "the header claims {} bytes; the limit is {}", length,
                   kMaxSafetensorsHeader);
    }
    if (length > file_.size() - kLengthBytes) {
      return wrong("InvalidHeaderLength", "the header claims {} bytes and the file holds {} after its length",
                   length, file_.size() - kLengthBytes);
    }
    const std::string_view text(reinterpret_cast<const char*>(file_.data()) + kLengthBytes, length);
    if (text.empty() || text.front() != '{')
      return wrong("InvalidHeaderStart", "the header does not start with {{");
    return text;
  }

  Result<TensorMetadata> metadata(const Json& entry) const {
    TensorMetadata metadata;
    if (!entry.is_object()) return wrong("InvalidHeaderDeserialization", "__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string())
        return wrong("InvalidHeaderDeserialization", "__metadata__.{} is not a text", key);
      metadata[key] = value.get<std::string>();
    }
    return metadata;
  }

  Result<TensorView> tensor_of(const std::string& name, const Json& entry) const {
    const bool complete = entry.is_object() && entry.size() == 3 && entry.contains("dtype") &&
                          entry.contains("shape") && entry.contains("data_offsets");
    if (!complete || !entry["dtype"].is_string() || !is_sizes(entry["shape"]) ||
        !is_sizes(entry["data_offsets"]) || entry["data_offsets"].size() != 2) {
      return wrong("InvalidHeaderDeserialization",
                   "tensor {} is not described by dtype, shape and two data_offsets", name);
    }
    const auto dtype = entry["dtype"].get<std::string>();
    const auto type = std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                                   [&](const TensorType& candidate) { return candidate.name == dtype; });
    if (type == kTensorTypes.end()) {
      return wrong("InvalidHeaderDeserialization", "tensor {} has the unknown type {}", name, dtype);
    }
    TensorView tensor{name, type->name, entry["shape"].get<std::vector<int64_t>>(), {}};
    const auto begin = entry["data_offsets"][0].get<uint64_t>();
    const auto end = entry["data_offsets"][1].get<uint64_t>();
    TERN_ASSIGN(const uint64_t n_bytes, size_in_bytes(tensor, type->size));
    if (end < begin || end - begin != n_bytes) {
      return wrong("TensorInvalidInfo", "tensor {} of shape [{}] takes {} bytes, not those from {} to {}",
                   name, fmt::join(tensor.shape, ", "), n_bytes, begin, end);
    }
    if (end > buffer_.size()) {
      return wrong("MetadataIncompleteBuffer", "tensor {} ends at byte {} of {} in the file", name, end,
                   buffer_.size());
    }
    tensor.data = buffer_.subspan(begin, end - begin);
    return tensor;
  }

  static bool is_sizes(const Json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& element) {
             return element.is_number_unsigned() && element.get<uint64_t>() <= uint64_t{1} << 62;
           });
  }

  Result<uint64_t> size_in_bytes(const TensorView& tensor, uint64_t element) const {
    uint64_t n = element;
    for (const int64_t extent : tensor.shape) {
      if (__builtin_mul_overflow(n, static_cast<uint64_t>(extent), &n)) {
        return wrong("ValidationOverflow", "tensor {} of shape [{}] takes more than 2^64 bytes", tensor.name,
                     fmt::join(tensor.shape, ", "));
      }
    }
    return n;
  }

  /// The tensors, in the order of their bytes, must follow each other and end where the file ends.
  Status check_cover(std::vector<TensorView>& tensors) const {
    std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
      if (a.data.data() != b.data.data()) return a.data.data() < b.data.data();
      return a.data.size() < b.data.size();  // an empty tensor before the one that starts where it lies
    });
    const std::byte* expected = buffer_.data();
    for (const TensorView& tensor : tensors) {
      if (tensor.data.data() != expected) {
        return wrong("InvalidOffset", "tensor {} starts at byte {}; the one before ends at {}", tensor.name,
                     tensor.data.data() - buffer_.data(), expected - buffer_.data());
      }
      expected += tensor.data.size();
    }
    if (expected != buffer_.data() + buffer_.size()) {
      return wrong("MetadataIncompleteBuffer", "the tensors cover {} of {} bytes", expected - buffer_.data(),
                   buffer_.size());
    }
    return {};
  }

  const std::string& path_;
  std::span<const std::byte> file_;
  std::span<const std::byte> buffer_;
};

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  TERN_ASSIGN(MappedFile file, MappedFile::open(path));
  SafetensorsFile opened(std::move(file));
  TERN_ASSIGN(Header header, HeaderReader(opened.file_.path(), opened.file_.bytes()).read());
  opened.tensors_ = std::move(header.tensors);
  opened.metadata_ = std::move(header.metadata);
  for (size_t idx = 0; idx < opened.tensors_.size(); ++idx) opened.index_[opened.tensors_[idx].name] = idx;
  return opened;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

Result<std::span<const float>> SafetensorsFile::floats(std::string_view name, int64_t n) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) return error(Code::kCorrupt, "{} does not hold the tensor {}", file_.path(), name);
  if (tensor->dtype != "F32" || tensor->data.size() != static_cast<size_t>(n) * sizeof(float)) {
    return error(Code::kCorrupt, "{}: tensor {} is {} [{}], not {} values of type F32", file_.path(), name,
                 tensor->dtype, fmt::join(tensor->shape, ", "), n);
  }
  const std::byte* data = tensor->data.data();
  if (reinterpret_cast<uintptr_t>(data) % alignof(float) != 0) {
    return error(Code::kUnsupported, "{}: tensor {} does not start at a multiple of 4 bytes", file_.path(),
                 name);
  }
  return std::span<const float>(reinterpret_cast<const float*>(data), static_cast<size_t>(n));
}

}  // namespace tern::trainer
