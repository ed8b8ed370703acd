// Numbers and texts as bytes, and a reader that never reads past what it was given.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace tern {

static_assert(std::endian::native == std::endian::little, "fields travel in little-endian order");

template <class T>
void append_number(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Length (32 bits), then the bytes.
inline void append_text(std::string& out, std::string_view text) {
  append_number(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

/// Takes fields from the front of `bytes`; nothing when there are too few left. Does not own.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  std::optional<T> number() {
    static_assert(std::is_integral_v<T>);
    if (rest_.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }

  std::optional<std::string_view> text() {
    const auto n = number<uint32_t>();
    if (!n || rest_.size() < *n) return std::nullopt;
    const std::string_view value = rest_.substr(0, *n);
    rest_.remove_prefix(*n);
    return value;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace tern
