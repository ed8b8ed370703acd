#include "trainer/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "runtime/base/philox.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/tensor_pieces.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

LlamaConfig small_model() {
  LlamaConfig config;
  config.hidden = 32;
  config.intermediate = 40;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 16;
  return config;
}

/// A rank's state with values that say where they belong: weights and moments by flat element, residuals by
/// rank too.
struct RankState {
  RankState(const ParameterLayout& layout, int rank, int n_ranks, int stage, bool with_residual)
      : plan(layout, {1000, n_ranks, 16}), ranges(owned_ranges(plan, stage, rank)) {
    const auto n = static_cast<size_t>(plan.n_padded());
    const auto n_owned = static_cast<size_t>(ranges.back().state_begin + ranges.back().size());
    params.resize(n);
    m.resize(n_owned);
    v.resize(n_owned);
    if (with_residual) residual.resize(n);
    state.layout = &layout;
    state.params = params;
    state.ranges = ranges;
    state.m = m;
    state.v = v;
    state.residual = residual;
    state.replicated = stage == 0;
    state.text = {100, 7};
    state.config = {{"model", {{"hidden_size", 32}}}};
  }
  void fill(int rank) {
    for (size_t i = 0; i < params.size(); ++i) params[i] = static_cast<float>(i) + 0.5F;
    for (size_t i = 0; i < residual.size(); ++i)
      residual[i] = static_cast<float>(i % 100) + 1000.0F * static_cast<float>(rank + 1);
    for (const OwnedRange& range : ranges) {
      for (int64_t i = 0; i < range.size(); ++i) {
        m[static_cast<size_t>(range.state_begin + i)] = static_cast<float>(range.begin + i) + 0.25F;
        v[static_cast<size_t>(range.state_begin + i)] = static_cast<float>(range.begin + i) + 0.75F;
      }
    }
  }

  BucketPlan plan;
  std::vector<OwnedRange> ranges;
  std::vector<float> params, m, v, residual;
  TrainState state;
};

void on_ranks(int n_ranks, const std::function<void(Communicator&)>& body) {
  Config config;
  config.heap_bytes = 64 << 20;
  auto worlds = World::in_process_world(n_ranks, config);
  ASSERT_TRUE(worlds.ok());
  std::vector<std::thread> threads;
  for (const World& world : *worlds) {
    threads.emplace_back([&world, &body] {
      auto comm = Communicator::create(world);
      ASSERT_TRUE(comm.ok()) << comm.error().message;
      body(*comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = testing::TempDir() + "checkpoint_" + test->name();
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void save(int n_ranks, int stage, bool with_residual, const Progress& progress, int64_t keep = 0) {
    on_ranks(n_ranks, [&](Communicator& comm) {
      RankState mine(layout_, comm.rank(), n_ranks, stage, with_residual);
      mine.fill(comm.rank());
      const auto saved = save_checkpoint(comm, mine.state, progress, {directory_, keep});
      ASSERT_TRUE(saved.ok()) << saved.error().message;
    });
  }
  /// The error that every rank gets when `n_ranks` load; empty when all load.
  std::string problem(int n_ranks, const std::string& path) {
    std::vector<std::string> problems(static_cast<size_t>(n_ranks));
    on_ranks(n_ranks, [&](Communicator& comm) {
      RankState mine(layout_, comm.rank(), n_ranks, 2, false);
      const auto loaded = load_checkpoint(comm, mine.state, path);
      if (!loaded.ok()) problems[static_cast<size_t>(comm.rank())] = loaded.error().message;
    });
    for (const std::string& other : problems) EXPECT_EQ(other, problems.front());
    return problems.front();
  }

  const LlamaConfig config_ = small_model();
  const ParameterLayout layout_{config_};
  std::string directory_;
};

TEST_F(CheckpointTest, EveryNumberOfRanksAndStageReadsWhatAnyOtherWrote) {
  struct Form {
    int n_ranks;
    int stage;
  };
  for (const Form from : {Form{4, 2}, Form{3, 0}, Form{1, 2}}) {
    const Progress progress{7, 6, 84};
    save(from.n_ranks, from.stage, false, progress);
    for (const Form to : {Form{4, 2}, Form{3, 2}, Form{5, 2}, Form{1, 0}, Form{2, 0}}) {
      on_ranks(to.n_ranks, [&](Communicator& comm) {
        RankState mine(layout_, comm.rank(), to.n_ranks, to.stage, false);
        RankState expected(layout_, comm.rank(), to.n_ranks, to.stage, false);
        expected.fill(comm.rank());
        const auto loaded = load_checkpoint(comm, mine.state, checkpoint_path(directory_, 7));
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        EXPECT_EQ(*loaded, progress);
        for (const TensorPiece& piece : pieces_of(layout_, mine.ranges)) {
          for (int64_t i = piece.state_begin; i < piece.state_begin + piece.size(); ++i) {
            ASSERT_EQ(mine.m[static_cast<size_t>(i)], expected.m[static_cast<size_t>(i)]);
            ASSERT_EQ(mine.v[static_cast<size_t>(i)], expected.v[static_cast<size_t>(i)]);
          }
        }
        for (const Parameter& parameter : layout_.parameters()) {
          const auto first = static_cast<size_t>(parameter.offset);
          ASSERT_EQ(mine.params[first], expected.params[first]) << parameter.name;
        }
      });
    }
  }
}

TEST_F(CheckpointTest, ResidualsComeBackToTheBitAndTheirSumSurvivesAReshard) {
  save(4, 2, true, {1, 1, 4});
  for (const int n_ranks : {4, 3, 1, 6}) {
    std::vector<std::vector<float>> residuals(static_cast<size_t>(n_ranks));
    on_ranks(n_ranks, [&](Communicator& comm) {
      RankState mine(layout_, comm.rank(), n_ranks, 2, true);
      const auto loaded = load_checkpoint(comm, mine.state, checkpoint_path(directory_, 1));
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      residuals[static_cast<size_t>(comm.rank())] = mine.residual;
    });
    for (const Parameter& parameter : layout_.parameters()) {
      const auto at = static_cast<size_t>(parameter.offset + parameter.size() - 1);
      float sum = 0;
      for (const auto& residual : residuals) sum += residual[at];
      EXPECT_EQ(sum, 4 * static_cast<float>(at % 100) + 10'000.0F) << n_ranks << " ranks, " << parameter.name;
      if (n_ranks != 4) continue;
      EXPECT_EQ(residuals[2][at], static_cast<float>(at % 100) + 3000.0F);
    }
  }
}

TEST_F(CheckpointTest, EveryAlteredOrCutFileIsNamed) {
  save(2, 2, false, {3, 3, 12});
  const std::string path = checkpoint_path(directory_, 3);
  EXPECT_EQ(problem(2, path), "");
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 6U);
  for (const fs::path& file : files) {
    const fs::path good = file.string() + ".good";
    fs::rename(file, good);
    EXPECT_THAT(problem(2, path), HasSubstr(file.filename().string()));  // missing

    fs::copy(good, file);
    fs::resize_file(file, fs::file_size(file) / 2);
    EXPECT_THAT(problem(2, path), HasSubstr(file.filename().string()));

    fs::copy(good, file, fs::copy_options::overwrite_existing);
    std::fstream altered(file, std::ios::in | std::ios::out | std::ios::binary);
    altered.seekg(static_cast<std::streamoff>(fs::file_size(file) - 8));
    const char byte = static_cast<char>(altered.get() ^ 1);
    altered.seekp(static_cast<std::streamoff>(fs::file_size(file) - 8));
    altered.put(byte);
    altered.close();
    EXPECT_THAT(problem(2, path), HasSubstr(file.filename().string()));
    fs::remove(file);
    fs::rename(good, file);
  }
  EXPECT_EQ(problem(2, path), "");
}

TEST_F(CheckpointTest, ADirectoryThatIsNoCheckpointIsNamed) {
  EXPECT_THAT(problem(2, directory_), HasSubstr(directory_ + " is not a checkpoint"));
}

TEST_F(CheckpointTest, AnotherTextOrModelIsRefused) {
  save(1, 2, false, {3, 3, 12});
  on_ranks(1, [&](Communicator& comm) {
    RankState mine(layout_, 0, 1, 2, false);
    mine.state.text = {100, 8};
    const auto loaded = load_checkpoint(comm, mine.state, checkpoint_path(directory_, 3));
    EXPECT_THAT(loaded.error().message, HasSubstr("data.text is not the text"));
  });
  LlamaConfig other = config_;
  other.layers = 1;
  const ParameterLayout other_layout(other);
  on_ranks(1, [&](Communicator& comm) {
    RankState mine(other_layout, 0, 1, 2, false);
    const auto loaded = load_checkpoint(comm, mine.state, checkpoint_path(directory_, 3));
    EXPECT_THAT(loaded.error().message, HasSubstr("not of this model"));
  });
}

TEST_F(CheckpointTest, OlderOnesGoAndPartialOnesDoNotCount) {
  fs::create_directories(directory_ + "/step_99.partial");
  fs::create_directories(directory_ + "/step_98");
  for (const int64_t step : {2, 4, 10, 12}) save(2, 2, false, {step, step, 0}, 2);
  EXPECT_EQ(newest_incomplete(directory_), checkpoint_path(directory_, 98));
  fs::remove(directory_ + "/step_98");
  fs::create_directories(directory_ + "/step_11");
  EXPECT_EQ(newest_incomplete(directory_), "") << "older than a whole one";
  EXPECT_THAT(checkpoint_steps(directory_), testing::ElementsAre(10, 12));
  save(2, 2, false, {12, 12, 0}, 2);  // again, in place of the old one
  EXPECT_EQ(problem(2, checkpoint_path(directory_, 12)), "");
  on_ranks(2, [&](Communicator& comm) {
    EXPECT_EQ(*find_checkpoint(comm, "latest", directory_), checkpoint_path(directory_, 12));
    EXPECT_EQ(*find_checkpoint(comm, "latest", directory_ + "/none"), "");
    EXPECT_EQ(*find_checkpoint(comm, "x", directory_), "x");
  });
}

TEST(TensorPieces, NamesAreReadBackAndOthersAreNot) {
  const ParameterLayout layout(small_model());
  const TensorPiece piece{3, 5, 17, 0};
  for (const Moment moment : {Moment::kFirst, Moment::kSecond}) {
    const auto parsed = parse_piece_name(layout, piece_name(layout, piece, moment));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->moment, moment);
    EXPECT_EQ(parsed->piece.param_idx, 3);
    EXPECT_EQ(parsed->piece.begin, 5);
    EXPECT_EQ(parsed->piece.end, 17);
  }
  for (const char* name :
       {"", "[", "model.norm.weight.exp_avg", "model.norm.weight.exp_avg[0:33]",
        "model.norm.weight.exp_avg[5:5]", "model.norm.weight.exp_avg[-1:5]", "model.norm.weight.exp_avg[0:5",
        "model.norm.weight[0:5]", "other.exp_avg[0:5]", "model.norm.weight.exp_avg[0:5x]"}) {
    EXPECT_FALSE(parse_piece_name(layout, name).has_value()) << name;
  }
}

}  // namespace
}  // namespace tern::trainer
