// A file's bytes as memory, read when touched.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/handle.h"
#include "runtime/base/status.h"
#include "trainer/storage/output_file.h"

namespace tern::trainer {

/// A read-only map of a whole file. Move-only. The file must not be truncated while it is mapped.
///
/// Threads: reading from any thread.
class MappedFile {
 public:
  /// Errors: kNotFound, kIo.
  static Result<MappedFile> open(const std::string& path);

  std::span<const std::byte> bytes() const { return mapping_.get().bytes(); }
  const std::string& path() const { return path_; }
  /// Size and hash of the contents; reads all of it.
  FileId id() const;

 private:
  MappedFile(std::string path, Mapping mapping) : path_(std::move(path)), mapping_(std::move(mapping)) {}
  std::string path_;
  Mapping mapping_;
};

}  // namespace tern::trainer
