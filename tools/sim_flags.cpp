#include "tools/sim_flags.h"

#include "runtime/base/size.h"
#include "tools/built_in_clusters.h"
#include "tools/call_text.h"
#include "tools/step_sim.h"
#include "tools/tern_sim.h"
#include "tools/write_file.h"

namespace tern::tools {
namespace {

Result<Report> answer(const SimFlags& flags) {
  if (flags.list) return clusters_report();
  if (flags.cluster.empty())
    return error(Code::kInvalidArgument, "--cluster NAME or FILE is missing; --list names the built-in ones");
  TERN_ASSIGN(Cluster cluster, load_cluster(flags.cluster, flags.n_ranks));
  if (!flags.step.empty()) {
    TERN_ASSIGN(const StepModel model, find_step_model(flags.step));
    return step_report({.model = model,
                        .cluster = std::move(cluster),
                        .gradient_bytes = flags.gradient == "fp32" ? size_t{4} : size_t{2}});
  }
  SimQuestion question{.cluster = std::move(cluster)};
  question.algorithm = flags.algorithm;
  question.codec = flags.codec;
  TERN_ASSIGN(question.collective, parse_collective(flags.collective));
  TERN_ASSIGN(question.root, root_of(question.collective, flags.root));
  TERN_ASSIGN(question.n_bytes, parse_size(flags.size));
  if (question.n_bytes > uint64_t{1} << 42)
    return error(Code::kInvalidArgument, "--size {} is above 4T", flags.size);
  return sim_report(question);
}

}  // namespace

void add_flags(CLI::App& command, SimFlags& flags) {
  command.add_option("--cluster", flags.cluster, "a built-in cluster (--list) or a JSON file");
  command.add_flag("--list", flags.list, "names the built-in clusters");
  command.add_option("--collective", flags.collective, "what is called")->capture_default_str();
  command.add_option("--size", flags.size, "bytes of the whole vector, fp32")->capture_default_str();
  command.add_option("--algorithm", flags.algorithm, "auto, or NAME[@segment size]")->capture_default_str();
  command.add_option("--codec", flags.codec, "auto[:max_loss_gap=PERCENT], none or NAME[:key=value,...]")
      ->capture_default_str();
  command.add_option("--ranks", flags.n_ranks, "instead of the cluster's own number")
      ->check(CLI::Range(1, 16384));
  command.add_option("--root", flags.root, "where the collective has one")->check(CLI::Range(0, 16383));
  command.add_option("--step", flags.step,
                     "a data-parallel training step instead of one call: " + step_model_names());
  command.add_option("--gradient", flags.gradient, "precision of the step's gradients")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  command.add_option("--json", flags.json_file, "also write the answer as JSON to this file");
}

Result<Report> sim_answer(const SimFlags& flags) {
  TERN_ASSIGN(Report report, answer(flags));
  if (!flags.json_file.empty()) TERN_TRY(write_file(flags.json_file, report.data.dump(1) + "\n"));
  return report;
}

}  // namespace tern::tools
