#include "trainer/checkpoint/manifest.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "trainer/storage/mapped_file.h"

namespace tern::trainer {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kFormat = "tern-checkpoint";
constexpr int kVersion = 1;
constexpr std::string_view kPrefix = "step_";

std::string hash_text(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

Json to_json(const Manifest& manifest) {
  Json files = Json::array();
  for (const ManifestFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.id.n_bytes}, {"xxh3", hash_text(file.id.hash)}});
  }
  return {{"format", kFormat},
          {"version", kVersion},
          {"step", manifest.step},
          {"world_size", manifest.world_size},
          {"files", std::move(files)}};
}

uint64_t hash_of(const Json& body) {
  const std::string text = body.dump();
  return XXH3_64bits(text.data(), text.size());
}

Manifest from_json(const Json& body) {
  Manifest manifest;
  manifest.step = body.at("step").get<int64_t>();
  manifest.world_size = body.at("world_size").get<int>();
  for (const Json& entry : body.at("files")) {
    const auto hash = entry.at("xxh3").get<std::string>();
    ManifestFile file{entry.at("name").get<std::string>(), {entry.at("bytes").get<uint64_t>(), 0}};
    std::from_chars(hash.data(), hash.data() + hash.size(), file.id.hash, 16);
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

// Of the directories of a checkpoint's name, those with or without a manifest; ascending.
std::vector<int64_t> steps_of(const std::string& output_dir, bool complete) {
  std::vector<int64_t> steps;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(output_dir, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [stop, problem] = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (problem != std::errc() || stop != end || step < 0) continue;
    if (std::filesystem::exists(entry.path() / kManifestName, failed) == complete) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  const Json body = to_json(manifest);
  return Json{{"checkpoint", body}, {"xxh3", hash_text(hash_of(body))}}.dump(1) + "\n";
}

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / kManifestName).string();
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    return error(Code::kNotFound, "{} is not a checkpoint: it has no {}", directory, kManifestName);
  }
  Result<Json> parsed = read_json_file(path);
  if (!parsed.ok()) return error(Code::kCorrupt, "{}", parsed.error().message);
  const bool whole = parsed->is_object() && parsed->contains("checkpoint") && parsed->contains("xxh3");
  if (!whole || (*parsed)["xxh3"] != hash_text(hash_of((*parsed)["checkpoint"]))) {
    return error(Code::kCorrupt, "{} is damaged: its hash is not that of its contents", path);
  }
  const Json& body = (*parsed)["checkpoint"];
  if (body.value("format", "") != kFormat || body.value("version", 0) != kVersion) {
    return error(Code::kCorrupt, "{} is of format {} version {}; this program reads {} version {}", path,
                 body.value("format", ""), body.value("version", 0), kFormat, kVersion);
  }
  try {
    return from_json(body);
  } catch (const Json::exception& problem) {
    return error(Code::kCorrupt, "{} is incomplete: {}", path, problem.what());
  }
}

Status verify_file(const std::string& directory, const ManifestFile& file) {
  const std::string path = (std::filesystem::path(directory) / file.name).string();
  TERN_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  if (mapped.bytes().size() != file.id.n_bytes) {
    return error(Code::kCorrupt, "{} holds {} bytes; the checkpoint's manifest says {}", path,
                 mapped.bytes().size(), file.id.n_bytes);
  }
  const FileId found = mapped.id();
  if (found.hash != file.id.hash) {
    return error(Code::kCorrupt,
                 "{} was altered: its hash is {:016x}; the checkpoint's manifest says {:016x}", path,
                 found.hash, file.id.hash);
  }
  return {};
}

std::string checkpoint_path(const std::string& output_dir, int64_t step) {
  return (std::filesystem::path(output_dir) / fmt::format("{}{}", kPrefix, step)).string();
}

std::vector<int64_t> checkpoint_steps(const std::string& output_dir) {
  return steps_of(output_dir, true);
}

std::string newest_incomplete(const std::string& output_dir) {
  const std::vector<int64_t> whole = steps_of(output_dir, true);
  const std::vector<int64_t> broken = steps_of(output_dir, false);
  if (broken.empty() || (!whole.empty() && whole.back() > broken.back())) return {};
  return checkpoint_path(output_dir, broken.back());
}

}  // namespace tern::trainer
