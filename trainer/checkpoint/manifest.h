// What a checkpoint's directory must hold: every file with its size and hash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/storage/output_file.h"

namespace tern::trainer {

struct ManifestFile {
  std::string name;
  FileId id;
};

/// Written last: a directory without it is not a checkpoint.
struct Manifest {
  int64_t step = 0;
  int world_size = 1;
  std::vector<ManifestFile> files;
};

inline constexpr const char* kManifestName = "manifest.json";

/// The text of manifest.json, with a hash of its own contents.
std::string to_text(const Manifest& manifest);

/// Errors: kNotFound (no checkpoint there); kCorrupt naming the file (damaged, or of a later version).
Result<Manifest> read_manifest(const std::string& directory);

/// Reads a whole file and compares. Errors: kNotFound, kIo; kCorrupt naming the file with sizes or hashes.
Status verify_file(const std::string& directory, const ManifestFile& file);

/// "DIR/step_120" for step 120.
std::string checkpoint_path(const std::string& output_dir, int64_t step);

/// Steps of the complete checkpoints under `output_dir`, ascending. Files and directories of other names are
/// ignored.
std::vector<int64_t> checkpoint_steps(const std::string& output_dir);

/// The newest directory of a checkpoint's name that is newer than all complete ones, for want of a manifest;
/// empty when there is none.
std::string newest_incomplete(const std::string& output_dir);

}  // namespace tern::trainer
