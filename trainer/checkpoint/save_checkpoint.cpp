#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/shard_names.h"
#include "trainer/checkpoint/tensor_pieces.h"
#include "trainer/parallel/agreement.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> shape_of(const Parameter& parameter) {
  if (parameter.one_dimensional()) return {parameter.cols};
  return {parameter.rows, parameter.cols};
}

std::vector<TensorView> whole_tensors(const ParameterLayout& layout, std::span<const float> flat) {
  std::vector<TensorView> tensors;
  for (const Parameter& parameter : layout.parameters()) {
    tensors.push_back(float_tensor(
        parameter.name, shape_of(parameter),
        flat.subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.size()))));
  }
  return tensors;
}

/// The part of replicated state that this rank writes; everything it holds when that is its own.
std::vector<OwnedRange> ranges_to_save(const TrainState& state, int rank, int n_ranks) {
  if (!state.replicated) return {state.ranges.begin(), state.ranges.end()};
  const Range mine = part_of(state.layout->n_elements(), rank, n_ranks, kParameterAlignment);
  return {{mine.begin, mine.end, mine.begin}};
}

class Writer {
 public:
  Writer(const TrainState& state, const Progress& progress, fs::path directory, int rank, int n_ranks)
      : state_(state),
        progress_(progress),
        directory_(std::move(directory)),
        rank_(rank),
        n_ranks_(n_ranks) {}

  Status write_mine() {
    if (rank_ == 0) {
      TERN_TRY(
          tensors("model.safetensors", whole_tensors(*state_.layout, state_.params), {{"format", "pt"}}));
      nlohmann::json model = state_.config.value("model", nlohmann::json::object());
      model["architectures"] = {"LlamaForCausalLM"};
      model["torch_dtype"] = "float32";
      TERN_TRY(text("config.json", model.dump(2) + "\n"));
      TERN_TRY(text("state.json", state_text()));
    }
    TERN_TRY(tensors(optimizer_shard_name(rank_, n_ranks_), moment_tensors(), {}));
    if (!state_.residual.empty()) {
      TERN_TRY(
          tensors(residual_shard_name(rank_, n_ranks_), whole_tensors(*state_.layout, state_.residual), {}));
    }
    return {};
  }
  const std::vector<ManifestFile>& files() const { return files_; }

 private:
  std::vector<TensorView> moment_tensors() const {
    std::vector<TensorView> out;
    const std::vector<OwnedRange> ranges = ranges_to_save(state_, rank_, n_ranks_);
    for (const TensorPiece& piece : pieces_of(*state_.layout, ranges)) {
      const auto first = static_cast<size_t>(piece.state_begin);
      const auto n = static_cast<size_t>(piece.size());
      out.push_back(float_tensor(piece_name(*state_.layout, piece, Moment::kFirst), {piece.size()},
                                 std::span<const float>(state_.m).subspan(first, n)));
      out.push_back(float_tensor(piece_name(*state_.layout, piece, Moment::kSecond), {piece.size()},
                                 std::span<const float>(state_.v).subspan(first, n)));
    }
    return out;
  }
  std::string state_text() const {
    const nlohmann::json state = {{"step", progress_.step},
                                  {"n_updates", progress_.n_updates},
                                  {"next_sample", progress_.next_sample},
                                  {"text", {{"bytes", state_.text.n_bytes}, {"xxh3", state_.text.hash}}},
                                  {"config", state_.config}};
    return state.dump(1) + "\n";
  }
  Status tensors(const std::string& name, const std::vector<TensorView>& views,
                 const TensorMetadata& metadata) {
    TERN_ASSIGN(const FileId id, write_safetensors((directory_ / name).string(), views, metadata));
    files_.push_back({name, id});
    return {};
  }
  Status text(const std::string& name, const std::string& contents) {
    TERN_ASSIGN(OutputFile file, OutputFile::create((directory_ / name).string()));
    TERN_TRY(file.write(contents));
    TERN_ASSIGN(const FileId id, file.close());
    files_.push_back({name, id});
    return {};
  }

  const TrainState& state_;
  const Progress& progress_;
  fs::path directory_;
  int rank_;
  int n_ranks_;
  std::vector<ManifestFile> files_;
};

/// All ranks' shard files on every rank: each has one of moments and, all or none, one of residuals.
Result<std::vector<ManifestFile>> gather_shards(Communicator& comm, const TrainState& state,
                                                const std::vector<ManifestFile>& mine) {
  const size_t n_kinds = state.residual.empty() ? 1 : 2;
  std::vector<int64_t> ids;
  for (size_t idx = mine.size() - n_kinds; idx < mine.size(); ++idx) {
    ids.push_back(static_cast<int64_t>(mine[idx].id.n_bytes));
    ids.push_back(static_cast<int64_t>(mine[idx].id.hash));
  }
  std::vector<int64_t> all(ids.size() * static_cast<size_t>(comm.size()));
  TERN_TRY(comm.all_gather(std::span<const int64_t>(ids), std::span<int64_t>(all)));
  std::vector<ManifestFile> files;
  const int64_t* next = all.data();
  for (int rank = 0; rank < comm.size(); ++rank) {
    for (size_t kind = 0; kind < n_kinds; ++kind, next += 2) {
      const std::string name =
          kind == 0 ? optimizer_shard_name(rank, comm.size()) : residual_shard_name(rank, comm.size());
      files.push_back({name, {static_cast<uint64_t>(next[0]), static_cast<uint64_t>(next[1])}});
    }
  }
  return files;
}

Status make_empty(const fs::path& directory) {
  std::error_code failed;
  fs::remove_all(directory, failed);
  fs::create_directories(directory, failed);
  if (failed) return error(Code::kIo, "cannot create {}: {}", directory.string(), failed.message());
  return {};
}

Status rename_to(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return error(Code::kIo, "cannot rename {} to {}: {}", from.string(), to.string(), system_text(errno));
}

/// Rank 0's last part: the manifest, then the name that makes it a checkpoint.
Status publish(const fs::path& partial, const fs::path& final_path, const Manifest& manifest) {
  std::error_code failed;
  for (const ManifestFile& file : manifest.files) {
    if (fs::file_size(partial / file.name, failed) == file.id.n_bytes && !failed) continue;
    return error(Code::kIo,
                 "{} is not there for rank 0: run.output_dir must be one directory that all ranks see",
                 (partial / file.name).string());
  }
  TERN_TRY(replace_file((partial / kManifestName).string(), to_text(manifest)));
  TERN_TRY(sync_directory(partial.string()));
  const fs::path old = final_path.string() + ".old";
  if (fs::exists(final_path, failed)) TERN_TRY(rename_to(final_path, old));
  TERN_TRY(rename_to(partial, final_path));
  fs::remove_all(old, failed);
  return sync_directory(final_path.parent_path().string());
}

void remove_older(const std::string& output_dir, int64_t keep) {
  if (keep == 0) return;
  const std::vector<int64_t> steps = checkpoint_steps(output_dir);
  std::error_code ignored;  // an old checkpoint that cannot be removed does not stop the run
  for (size_t idx = 0; idx + static_cast<size_t>(keep) < steps.size(); ++idx) {
    fs::remove_all(checkpoint_path(output_dir, steps[idx]), ignored);
  }
}

}  // namespace

Result<std::string> save_checkpoint(Communicator& comm, const TrainState& state, const Progress& progress,
                                    const CheckpointFolder& folder) {
  const auto& [output_dir, keep] = folder;
  const fs::path final_path = checkpoint_path(output_dir, progress.step);
  const fs::path partial = final_path.string() + ".partial";
  const bool first = comm.rank() == 0;
  TERN_TRY(agree(comm, first ? make_empty(partial) : Status()));

  Writer writer(state, progress, partial, comm.rank(), comm.size());
  Status saved = agree(comm, writer.write_mine());
  if (saved.ok()) {
    TERN_ASSIGN(std::vector<ManifestFile> shards, gather_shards(comm, state, writer.files()));
    Status published;
    if (first) {
      const size_t n_shards_of_mine = state.residual.empty() ? 1 : 2;
      std::vector<ManifestFile> files(writer.files().begin(),
                                      writer.files().end() - static_cast<std::ptrdiff_t>(n_shards_of_mine));
      files.insert(files.end(), shards.begin(), shards.end());
      published = publish(partial, final_path, {progress.step, comm.size(), std::move(files)});
    }
    saved = agree(comm, published);
  }
  if (!saved.ok()) {
    std::error_code ignored;
    if (first) fs::remove_all(partial, ignored);
    return saved.error();
  }
  if (first) remove_older(output_dir, keep);
  return final_path.string();
}

}  // namespace tern::trainer
