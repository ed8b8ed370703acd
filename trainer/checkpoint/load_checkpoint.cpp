#include <algorithm>
#include <filesystem>

#include "runtime/base/json_text.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/shard_names.h"
#include "trainer/checkpoint/tensor_pieces.h"
#include "trainer/parallel/agreement.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

template <class T>
std::span<T> part(std::span<T> all, int64_t begin, int64_t n) {
  return all.subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
}

class Reader {
 public:
  Reader(TrainState& state, std::string path, int rank, int n_ranks)
      : state_(state), path_(std::move(path)), rank_(rank), n_ranks_(n_ranks) {}

  /// Every file is hashed by one rank.
  Status verify() {
    TERN_ASSIGN(manifest_, read_manifest(path_));
    for (size_t idx = 0; idx < manifest_.files.size(); ++idx) {
      if (idx % static_cast<size_t>(n_ranks_) != static_cast<size_t>(rank_)) continue;
      TERN_TRY(verify_file(path_, manifest_.files[idx]));
    }
    return {};
  }

  Result<Progress> read() {
    TERN_ASSIGN(const Progress progress, read_progress());
    TERN_TRY(read_weights());
    TERN_TRY(read_moments());
    TERN_TRY(read_residuals());
    return progress;
  }

 private:
  std::string file(const std::string& name) const { return (fs::path(path_) / name).string(); }
  const ParameterLayout& layout() const { return *state_.layout; }

  Result<Progress> read_progress() const {
    TERN_ASSIGN(const nlohmann::json json, read_json_file(file("state.json")));
    Progress progress;
    FileId text;
    try {
      progress = {json.at("step").get<int64_t>(), json.at("n_updates").get<int64_t>(),
                  json.at("next_sample").get<uint64_t>()};
      text = {json.at("text").at("bytes").get<uint64_t>(), json.at("text").at("xxh3").get<uint64_t>()};
    } catch (const nlohmann::json::exception& problem) {
      return error(Code::kCorrupt, "{} is incomplete: {}", file("state.json"), problem.what());
    }
    if (text != state_.text) {
      return error(
          Code::kInvalidArgument,
          "data.text is not the text that {} was trained on: {} bytes with hash {:016x} now, {} bytes with "
          "hash {:016x} then",
          path_, state_.text.n_bytes, state_.text.hash, text.n_bytes, text.hash);
    }
    return progress;
  }

  Status read_weights() {
    TERN_ASSIGN(const SafetensorsFile weights, SafetensorsFile::open(file("model.safetensors")));
    for (const Parameter& parameter : layout().parameters()) {
      Result<std::span<const float>> values = weights.floats(parameter.name, parameter.size());
      if (!values.ok()) {
        return error(Code::kInvalidArgument, "the checkpoint is not of this model: {}",
                     values.error().message);
      }
      std::ranges::copy(*values, part(state_.params, parameter.offset, parameter.size()).begin());
    }
    if (weights.tensors().size() != layout().parameters().size()) {
      return error(Code::kInvalidArgument,
                   "the checkpoint is not of this model: {} holds {} tensors, the model has {}",
                   weights.file().path(), weights.tensors().size(), layout().size());
    }
    return {};
  }

  Status read_moments() {
    const std::vector<TensorPiece> wanted = pieces_of(layout(), state_.ranges);
    int64_t n_wanted = 0;
    for (const TensorPiece& piece : wanted) n_wanted += 2 * piece.size();
    int64_t n_read = 0;
    for (int writer = 0; writer < manifest_.world_size; ++writer) {
      TERN_ASSIGN(const SafetensorsFile shard,
                  SafetensorsFile::open(file(optimizer_shard_name(writer, manifest_.world_size))));
      for (const TensorView& tensor : shard.tensors()) {
        TERN_ASSIGN(const int64_t n, copy_moments(shard, tensor, wanted));
        n_read += n;
      }
    }
    if (n_read != n_wanted) {
      return error(Code::kCorrupt, "the optimizer files of {} hold {} of the {} values that rank {} needs",
                   path_, n_read, n_wanted, rank_);
    }
    return {};
  }

  /// Copies what a saved piece shares with the wanted ones; returns how many values that were.
  Result<int64_t> copy_moments(const SafetensorsFile& shard, const TensorView& tensor,
                               const std::vector<TensorPiece>& wanted) {
    const std::optional<NamedPiece> saved = parse_piece_name(layout(), tensor.name);
    if (!saved) {
      return error(Code::kCorrupt, "{} holds {}, which is no piece of this model", shard.file().path(),
                   tensor.name);
    }
    TERN_ASSIGN(const std::span<const float> values, shard.floats(tensor.name, saved->piece.size()));
    const std::span<float> moments = saved->moment == Moment::kFirst ? state_.m : state_.v;
    int64_t n_copied = 0;
    for (const TensorPiece& piece : wanted) {
      if (piece.param_idx != saved->piece.param_idx) continue;
      const int64_t begin = std::max(piece.begin, saved->piece.begin);
      const int64_t end = std::min(piece.end, saved->piece.end);
      if (begin >= end) continue;
      std::ranges::copy(part(values, begin - saved->piece.begin, end - begin),
                        part(moments, piece.state_begin + begin - piece.begin, end - begin).begin());
      n_copied += end - begin;
    }
    return n_copied;
  }

  Status read_residuals() {
    if (state_.residual.empty()) return {};
    std::ranges::fill(state_.residual, 0.0F);
    for (int writer = rank_; writer < manifest_.world_size; writer += n_ranks_) {
      const std::string name = residual_shard_name(writer, manifest_.world_size);
      const bool saved = std::ranges::any_of(manifest_.files, [&](const auto& f) { return f.name == name; });
      if (!saved) continue;  // the run that wrote the checkpoint had no residuals
      TERN_ASSIGN(const SafetensorsFile shard, SafetensorsFile::open(file(name)));
      for (const Parameter& parameter : layout().parameters()) {
        TERN_ASSIGN(const std::span<const float> values, shard.floats(parameter.name, parameter.size()));
        const std::span<float> mine = part(state_.residual, parameter.offset, parameter.size());
        if (writer == rank_) {
          std::ranges::copy(values, mine.begin());
        } else {
          std::ranges::transform(mine, values, mine.begin(), std::plus<>());
        }
      }
    }
    return {};
  }

  TrainState& state_;
  std::string path_;
  int rank_;
  int n_ranks_;
  Manifest manifest_;
};

}  // namespace

Result<Progress> load_checkpoint(Communicator& comm, TrainState& state, const std::string& path) {
  Reader reader(state, path, comm.rank(), comm.size());
  TERN_TRY(agree(comm, reader.verify()));
  Result<Progress> progress = reader.read();
  TERN_TRY(agree(comm, progress.status()));
  return progress;
}

Result<std::string> find_checkpoint(Communicator& comm, const std::string& resume,
                                    const std::string& output_dir) {
  if (resume != "latest") return resume;
  std::string path;
  if (comm.rank() == 0) {
    const std::vector<int64_t> steps = checkpoint_steps(output_dir);
    if (!steps.empty()) path = checkpoint_path(output_dir, steps.back());
  }
  return text_of_rank_0(comm, path);
}

}  // namespace tern::trainer
