// A text as tokens in a file of its own, made once and mapped by every rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "trainer/storage/mapped_file.h"

namespace tern::trainer {

/// Tokens that the tokenizer "bytes" can make: every byte is its own token.
inline constexpr int kByteVocabulary = 256;

/// Mapped tokens. Move-only.
///
/// Threads: reading from any thread.
class TokenFile {
 public:
  /// Where the token file of `text_path` lies: in `cache_dir`, or beside the text when that is empty.
  static std::string path_for(const std::string& text_path, const std::string& cache_dir);

  /// Whether the text is there. Errors: kNotFound, kIo; kInvalidArgument (an empty text).
  static Status find_text(const std::string& text_path);

  /// Makes the token file of a text unless there is one of the same text (by size and hash). Other processes
  /// that open the same path see the old file or the new one, never a part.
  ///
  /// Cost:   reads the text once; writes it once when it is new or changed.
  /// Errors: those of find_text(), kIo.
  static Status prepare(const std::string& text_path, const std::string& token_path);

  /// Errors: kNotFound, kIo; kCorrupt naming the file and what is wrong with it.
  static Result<TokenFile> open(const std::string& token_path);

  std::span<const uint8_t> tokens() const { return tokens_; }
  /// Of the text that the tokens were made from.
  const FileId& source() const { return source_; }

 private:
  TokenFile(MappedFile file, FileId source, std::span<const uint8_t> tokens)
      : file_(std::move(file)), source_(source), tokens_(tokens) {}
  MappedFile file_;
  FileId source_;
  std::span<const uint8_t> tokens_;
};

}  // namespace tern::trainer
