#include "tools/write_file.h"

#include <cerrno>
#include <fstream>

namespace tern::tools {

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return error(Code::kIo, "cannot write {}: {}", path, system_text(errno));
  return {};
}

}  // namespace tern::tools
