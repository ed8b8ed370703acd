#include "trainer/data/token_file.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/base/crc32c.h"

namespace tern::trainer {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'E', 'R', 'N', 'T', 'O', 'K', '1'};

/// The first 64 bytes of a token file, little endian; the tokens follow.
struct TokenHeader {
  std::array<char, 8> magic = kMagic;
  std::array<char, 16> tokenizer = {'b', 'y', 't', 'e', 's'};
  uint64_t n_tokens = 0;
  uint64_t source_bytes = 0;
  uint64_t source_hash = 0;
  uint32_t bytes_per_token = 1;
  uint32_t reserved[2] = {};
  uint32_t crc = 0;  ///< of all fields before
};
static_assert(sizeof(TokenHeader) == 64);

uint32_t crc_of(const TokenHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(sizeof(TokenHeader) - sizeof(uint32_t)));
}

Result<MappedFile> open_text(const std::string& path) {
  Result<MappedFile> text = MappedFile::open(path);
  if (!text.ok()) return error(text.error().code, "data.text: {}", text.error().message);
  if (text->bytes().empty()) return error(Code::kInvalidArgument, "data.text: {} is empty", path);
  return text;
}

Status write_tokens(const MappedFile& text, const FileId& source, const std::string& path) {
  TokenHeader header;
  header.n_tokens = source.n_bytes;
  header.source_bytes = source.n_bytes;
  header.source_hash = source.hash;
  header.crc = crc_of(header);
  TERN_ASSIGN(OutputFile file, OutputFile::create(path));
  TERN_TRY(file.write(std::as_bytes(std::span(&header, 1))));
  TERN_TRY(file.write(text.bytes()));
  return file.close().status();
}

}  // namespace

std::string TokenFile::path_for(const std::string& text_path, const std::string& cache_dir) {
  const std::filesystem::path text(text_path);
  const std::string name = text.filename().string() + ".bytes.tokens";
  return ((cache_dir.empty() ? text.parent_path() : std::filesystem::path(cache_dir)) / name).string();
}

Status TokenFile::find_text(const std::string& text_path) {
  return open_text(text_path).status();
}

Status TokenFile::prepare(const std::string& text_path, const std::string& token_path) {
  TERN_ASSIGN(const MappedFile text, open_text(text_path));
  const FileId source = text.id();
  if (const Result<TokenFile> old = open(token_path); old.ok() && old->source() == source) return {};

  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::path(token_path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  const std::string partial = fmt::format("{}.{}.partial", token_path, ::getpid());
  Status written = write_tokens(text, source, partial);
  if (written.ok() && std::rename(partial.c_str(), token_path.c_str()) != 0) {
    written = error(Code::kIo, "cannot rename {} to {}: {}", partial, token_path, system_text(errno));
  }
  if (!written.ok()) ::unlink(partial.c_str());
  return written;
}

Result<TokenFile> TokenFile::open(const std::string& token_path) {
  TERN_ASSIGN(MappedFile file, MappedFile::open(token_path));
  const std::span<const std::byte> bytes = file.bytes();
  TokenHeader header;
  if (bytes.size() < sizeof(header)) {
    return error(Code::kCorrupt, "the token file {} holds {} bytes, fewer than its header", token_path,
                 bytes.size());
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic || header.crc != crc_of(header) || header.tokenizer != TokenHeader().tokenizer ||
      header.bytes_per_token != 1) {
    return error(Code::kCorrupt,
                 "{} is not a token file of this version, or its header is damaged; remove it", token_path);
  }
  if (header.n_tokens != bytes.size() - sizeof(header)) {
    return error(Code::kCorrupt, "the token file {} holds {} tokens where its header says {}; remove it",
                 token_path, bytes.size() - sizeof(header), header.n_tokens);
  }
  const auto* tokens = reinterpret_cast<const uint8_t*>(bytes.data()) + sizeof(header);
  return TokenFile(std::move(file), {header.source_bytes, header.source_hash}, {tokens, header.n_tokens});
}

}  // namespace tern::trainer
