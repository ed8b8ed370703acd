#include "runtime/base/json_text.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

namespace tern {
namespace {

constexpr uintmax_t kMaxFileBytes = uintmax_t{256} << 20;

/// Follows the parser's events to see what the finished value no longer shows: keys that came twice.
class StructureWatch {
 public:
  void see(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kMaxJsonDepth) too_deep_ = true;
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end && !open_.empty()) open_.pop_back();
    if (event != Event::key || open_.empty()) return;
    Level& level = open_.back();
    level.key = parsed.get<std::string>();
    if (!level.seen.insert(level.key).second && duplicate_.empty()) duplicate_ = path();
  }
  const std::string& duplicate() const { return duplicate_; }
  bool too_deep() const { return too_deep_; }

 private:
  struct Level {
    std::string key;
    std::set<std::string> seen;
  };
  std::string path() const {
    std::string joined;
    for (const Level& level : open_) joined += (joined.empty() ? "" : ".") + level.key;
    return joined;
  }
  std::vector<Level> open_;
  std::string duplicate_;
  bool too_deep_ = false;
};

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, std::string_view origin) {
  StructureWatch watch;
  const auto callback = [&watch](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    watch.see(depth, event, parsed);
    return true;
  };
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text, callback, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& problem) {
    const std::string_view what = problem.what();
    const size_t prefix = what.find("] ");  // the library's own "[json.exception.parse_error.101] "
    return error(Code::kInvalidArgument, "{} is not valid JSON: {}", origin,
                 prefix == std::string_view::npos ? what : what.substr(prefix + 2));
  }
  if (watch.too_deep()) {
    return error(Code::kInvalidArgument, "{} nests objects and arrays more than {} deep", origin,
                 kMaxJsonDepth);
  }
  if (!watch.duplicate().empty()) {
    return error(Code::kInvalidArgument, "{} has the key {} twice", origin, watch.duplicate());
  }
  return value;
}

Result<std::string> read_text_file(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return error(Code::kNotFound, "there is no file {}", path);
  if (!std::filesystem::is_regular_file(path, failed)) {
    return error(Code::kInvalidArgument, "{} is not a file", path);
  }
  const uintmax_t size = std::filesystem::file_size(path, failed);
  if (!failed && size > kMaxFileBytes) {
    return error(Code::kInvalidArgument, "{} holds {} bytes, too many for a configuration", path, size);
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (size > 0) text << file.rdbuf();
  if (failed || !file) return error(Code::kIo, "cannot read {}: {}", path, system_text(errno));
  return text.str();
}

Result<nlohmann::json> read_json_file(const std::string& path) {
  TERN_ASSIGN(const std::string text, read_text_file(path));
  return parse_json(text, path);
}

}  // namespace tern
