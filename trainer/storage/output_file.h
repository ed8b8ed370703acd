// Files that are either complete or not there: written, hashed and synced before they get their name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/handle.h"
#include "runtime/base/status.h"

namespace tern::trainer {

/// What identifies a file's contents: size and XXH3-64.
struct FileId {
  uint64_t n_bytes = 0;
  uint64_t hash = 0;
  bool operator==(const FileId&) const = default;
};

/// A file being written from front to back. Move-only; not closed means not synced.
///
/// Threads: one at a time.
class OutputFile {
 public:
  /// Creates or truncates. Errors: kIo with the system's words.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  /// Errors: kIo (disk full, size limit) naming the file and the bytes written before.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);

  /// Flushes to the disk and closes. Errors: kIo.
  Result<FileId> close();

 private:
  struct Hash;
  OutputFile(std::string path, Fd fd);
  std::string path_;
  Fd fd_;
  uint64_t n_bytes_ = 0;
  std::unique_ptr<Hash> hash_;
};

/// Makes names in a directory durable (renames, new files). Errors: kIo.
Status sync_directory(const std::string& path);

/// Writes `text` beside `path` and renames: readers see the old contents or the new, never a part.
/// Errors: kIo; the old file is then untouched.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace tern::trainer
