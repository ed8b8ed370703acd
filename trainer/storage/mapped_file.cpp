#include "trainer/storage/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>

namespace tern::trainer {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return error(Code::kNotFound, "there is no file {}", path);
  if (!fd) return error(Code::kIo, "cannot open {}: {}", path, system_text(errno));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return error(Code::kIo, "cannot read {}: {}", path, system_text(errno));
  if (!S_ISREG(info.st_mode)) return error(Code::kIo, "{} is not a file", path);
  const auto n_bytes = static_cast<size_t>(info.st_size);
  if (n_bytes == 0) return MappedFile(path, Mapping());  // an empty range cannot be mapped
  void* data = ::mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return error(Code::kIo, "cannot map {}: {}", path, system_text(errno));
  return MappedFile(path, Mapping({static_cast<std::byte*>(data), n_bytes}));
}

FileId MappedFile::id() const {
  return {bytes().size(), XXH3_64bits(bytes().data(), bytes().size())};
}

}  // namespace tern::trainer
