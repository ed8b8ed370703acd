// A run of the tiny configuration on threads or processes, for the trainer's tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/philox.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/session.h"
#include "trainer/storage/safetensors.h"

namespace tern::trainer {

inline constexpr const char* kTinyConfig = TERN_SOURCE_DIR "/trainer/configs/tiny.json";

/// An empty directory of the test's own.
inline std::string fresh_directory(const std::string& name) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string path = testing::TempDir() + "trainer_" + test->name() + "_" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

/// A text with some structure: words drawn from a few, so that a model can learn something in a few steps.
inline std::string write_text(const std::string& directory, size_t n_bytes = 20'000) {
  const std::vector<std::string> words = {"in ",   "the ", "beginning ", "was ",
                                          "word ", "and ", "light ",     "\n"};
  Philox random(11);
  std::string text;
  while (text.size() < n_bytes) text += words[random.below(words.size())];
  std::string path = directory + "/text.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// What every rank of a run returned.
using Outcomes = std::vector<Result<RunOutcome>>;

struct InProcess {
  int n_ranks = 1;
  std::function<bool()> stop;  ///< asked on rank 0 only
  std::string transport = "auto";
  std::string* said = nullptr;  ///< takes what rank 0 writes to its console
};

/// Runs on threads of this process.
inline Outcomes run_on_threads(const InProcess& how, const std::vector<std::string>& assignments) {
  Config settings;
  settings.heap_bytes = 128 << 20;
  settings.threads = 1;
  settings.transport = how.transport;
  const auto worlds = World::in_process_world(how.n_ranks, settings);
  EXPECT_TRUE(worlds.ok());
  Outcomes outcomes(static_cast<size_t>(how.n_ranks), error(Code::kInternal, "did not run"));
  std::vector<std::thread> threads;
  for (const World& world : *worlds) {
    threads.emplace_back([&, rank = world.rank] {
      const auto config = RunConfig::from_file(kTinyConfig, assignments);
      Console console;
      if (rank == 0 && how.said != nullptr)
        console.write = [&how](std::string_view text) { how.said->append(text); };
      outcomes[static_cast<size_t>(rank)] =
          run_training(world, config, console, rank == 0 ? how.stop : nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// The lines of DIR/metrics.jsonl.
inline std::vector<nlohmann::json> metrics_of(const std::string& directory) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(directory + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// All weights of a checkpoint, in the order of its file.
inline std::vector<float> weights_of(const std::string& directory, int64_t step) {
  std::vector<float> weights;
  const auto file = SafetensorsFile::open(checkpoint_path(directory, step) + "/model.safetensors");
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  if (!file.ok()) return weights;
  for (const TensorView& tensor : file->tensors()) {
    const auto values = file->floats(tensor.name, static_cast<int64_t>(tensor.data.size() / sizeof(float)));
    weights.insert(weights.end(), values->begin(), values->end());
  }
  return weights;
}

/// Sizes and hashes of a checkpoint's files, by name; state.json apart, which holds the output directory.
inline std::vector<std::string> file_ids(const std::string& directory, int64_t step) {
  std::vector<std::string> ids;
  const auto manifest = read_manifest(checkpoint_path(directory, step));
  EXPECT_TRUE(manifest.ok()) << (manifest.ok() ? "" : manifest.error().message);
  if (!manifest.ok()) return ids;
  for (const ManifestFile& file : manifest->files) {
    if (file.name != "state.json")
      ids.push_back(fmt::format("{} {} {:x}", file.name, file.id.n_bytes, file.id.hash));
  }
  return ids;
}

}  // namespace tern::trainer
