#include "tools/write_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace tern::tools {

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
  return {};
}

}  // namespace tern::tools
