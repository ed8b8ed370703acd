#include "trainer/storage/output_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace tern::trainer {
namespace {

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

Error io_error(std::string_view action, const std::string& path) {
  return error(Code::kIo, "cannot {} {}: {}", action, path, system_text(errno));
}

}  // namespace

struct OutputFile::Hash {
  std::unique_ptr<XXH3_state_t, FreeHash> state{XXH3_createState()};
};

OutputFile::OutputFile(std::string path, Fd fd)
    : path_(std::move(path)), fd_(std::move(fd)), hash_(std::make_unique<Hash>()) {
  XXH3_64bits_reset(hash_->state.get());
}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return io_error("create", path);
  return OutputFile(path, std::move(fd));
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  XXH3_64bits_update(hash_->state.get(), bytes.data(), bytes.size());
  constexpr size_t kMostAtOnce = size_t{64} << 20;
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return error(Code::kIo, "cannot write {} beyond {} bytes: {}", path_, n_bytes_,
                   n < 0 ? system_text(errno) : std::string("nothing was written"));
    }
    n_bytes_ += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status OutputFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Result<FileId> OutputFile::close() {
  if (::fsync(fd_.get()) != 0) return io_error("flush", path_);
  if (::close(fd_.release()) != 0) return io_error("close", path_);
  return FileId{n_bytes_, XXH3_64bits_digest(hash_->state.get())};
}

Status sync_directory(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_error("open the directory", path);
  if (::fsync(fd.get()) != 0) return io_error("flush the directory", path);
  return {};
}

Status replace_file(const std::string& path, std::string_view text) {
  const std::string partial = fmt::format("{}.{}.partial", path, ::getpid());
  const auto write_partial = [&]() -> Status {
    TERN_ASSIGN(OutputFile file, OutputFile::create(partial));
    TERN_TRY(file.write(text));
    TERN_TRY(file.close());
    if (std::rename(partial.c_str(), path.c_str()) != 0) return io_error("rename to", path);
    return {};
  };
  if (Status written = write_partial(); !written.ok()) {
    ::unlink(partial.c_str());
    return written;
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return sync_directory(parent.empty() ? "." : parent.string());
}

}  // namespace tern::trainer
