#include "runtime/base/size.h"

#include <cctype>
#include <charconv>

namespace tern {
namespace {

constexpr std::string_view kSuffixes = "kmgt";

Error not_a_size(std::string_view text) {
  return error(Code::kInvalidArgument,
               "\"{}\" is not a size; write a whole number of bytes such as 4096, 64k, 8M, 1G, or inf", text);
}

Error too_large(std::string_view text) {
  return error(Code::kInvalidArgument, "size {} is above 2^64 bytes", text);
}

// The power of 1024 of a suffix, or -1.
int exponent_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  const auto letter = static_cast<char>(std::tolower(static_cast<unsigned char>(suffix.front())));
  const size_t idx = kSuffixes.find(letter);
  const std::string_view rest = suffix.substr(1);
  if (idx == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return -1;
  return static_cast<int>(idx) + 1;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  if (text == "inf") return kInfiniteSize;
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code == std::errc::result_out_of_range) return too_large(text);
  if (code != std::errc()) return not_a_size(text);
  const int exponent = exponent_of({rest, static_cast<size_t>(end - rest)});
  if (exponent < 0) return not_a_size(text);
  const int shift = 10 * exponent;
  if (number > (kInfiniteSize - 1) >> shift) return too_large(text);
  return number << shift;
}

std::string format_size(uint64_t n_bytes) {
  if (n_bytes == kInfiniteSize) return "inf";
  size_t exponent = 0;
  while (exponent < kSuffixes.size() && n_bytes != 0 && n_bytes % 1024 == 0) {
    n_bytes /= 1024;
    ++exponent;
  }
  constexpr std::string_view kPrinted = "kMGT";
  return exponent == 0 ? fmt::format("{}", n_bytes) : fmt::format("{}{}", n_bytes, kPrinted[exponent - 1]);
}

}  // namespace tern
