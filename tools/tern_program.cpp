#include "tools/tern_program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "runtime/base/size.h"
#include "tools/call_text.h"
#include "tools/sim_flags.h"
#include "tools/tern_calibrate.h"
#include "tools/tern_info.h"
#include "tools/tern_plan.h"

namespace tern::tools {
namespace {

enum ExitStatus : int { kGood = 0, kFailed = 1, kBadFlags = 2 };

/// What the flags say, as text: turned into values after they are all there.
struct Flags {
  std::string collective;
  std::string size = "1M";
  std::string codec;
  double hidden_us = 0;
  std::optional<int> root;
  PlanQuestion question;
  SimFlags sim;
  std::string calibration_file;
  bool json = false;
};

void add_question(CLI::App& command, Flags& flags) {
  command
      .add_option(
          "collective", flags.collective,
          "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter, sendrecv "
          "or barrier")
      ->required();
  command.add_option("--ranks", flags.question.n_ranks, "ranks")->required()->check(CLI::Range(1, 16384));
  command
      .add_option("--hosts", flags.question.n_hosts,
                  "hosts that the ranks are spread over, neighbours together")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  command.add_option("--size", flags.size, "bytes of the whole vector, fp32")->capture_default_str();
  command.add_option("--root", flags.root, "where the collective has one")->check(CLI::Range(0, 16383));
  command.add_option("--algorithm", flags.question.algorithm, "instead of the planner's choice");
  command.add_option("--codec", flags.codec,
                     "NAME[:key=value,...] or auto[:max_loss_gap=PERCENT]; default: TERN_CODEC");
  command.add_flag("--residual", flags.question.has_residual, "codec auto: the call has a residual");
  command.add_option("--hidden-us", flags.hidden_us, "codec auto: of the call that other work hides")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

Result<PlanQuestion> question_of(const Flags& flags, const Config& config) {
  PlanQuestion question = flags.question;
  TERN_ASSIGN(question.collective, parse_collective(flags.collective));
  TERN_ASSIGN(question.root, root_of(question.collective, flags.root));
  TERN_ASSIGN(question.n_bytes, parse_size(flags.size));
  question.hidden_seconds = flags.hidden_us * 1e-6;
  if (question.n_bytes > uint64_t{1} << 42)
    return error(Code::kInvalidArgument, "--size {} is above 4T", flags.size);
  TERN_ASSIGN(question.codec, parse_codec_choice(flags.codec.empty() ? config.codec : flags.codec));
  return question;
}

Result<Report> info_answer() {
  TERN_ASSIGN(const Config config, Config::from_environment());
  TERN_ASSIGN(const World world, World::from_environment(config));
  return info_report(world);
}

Result<Report> calibrate_answer(const Flags& flags) {
  TERN_ASSIGN(const Config config, Config::from_environment());
  return calibrate_report(config, flags.calibration_file);
}

/// An answer that takes seconds is announced to who waits for it at a terminal.
void announce(const PlanQuestion& question) {
  constexpr int kFewRanks = 256;
  if (question.n_ranks <= kFewRanks || question.n_ranks > kMostRanksToShow || isatty(STDERR_FILENO) == 0)
    return;
  fmt::print(stderr, "tern: working through the plans of {} ranks; this may take half a minute\n",
             question.n_ranks);
}

using Answer = Result<Report> (*)(const PlanQuestion& question, const Config& config);

Result<Report> plan_answer(const Flags& flags, Answer answer) {
  TERN_ASSIGN(const Config config, Config::from_environment());
  TERN_ASSIGN(const PlanQuestion question, question_of(flags, config));
  announce(question);
  return answer(question, config);
}

int print(const Result<Report>& report, const Flags& flags, std::FILE* out) {
  if (!report.ok()) {
    fmt::print(stderr, "tern: {}\n", report.error().message);
    const Code code = report.error().code;
    return code == Code::kInvalidArgument || code == Code::kNotFound ? kBadFlags : kFailed;
  }
  if (report->data.is_null()) return kGood;  // another rank answers
  fmt::print(out, "{}", flags.json ? report->data.dump(1) + "\n" : report->text);
  return kGood;
}

}  // namespace

int run_tern(std::span<const char* const> args, std::FILE* out) {
  Flags flags;
  CLI::App app("Shows what Tern is made of and what it decides.", "tern");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.require_subcommand(0, 1);  // none: said below, so that an unknown word is what is complained about
  app.fallthrough();
  app.add_flag("--json", flags.json, "the answer as JSON");
  const CLI::App* info_command =
      app.add_subcommand("info", "settings, algorithms, codecs, transports, build");
  CLI::App* plan_command = app.add_subcommand("plan", "plans as steps");
  plan_command->require_subcommand(0, 1);
  CLI::App* show_command =
      plan_command->add_subcommand("show", "the steps of the ranks, after they were verified");
  add_question(*show_command, flags);
  show_command->add_option("--rank", flags.question.rank, "only this rank's")->check(CLI::Range(0, 16383));
  CLI::App* why_command = app.add_subcommand("why", "all candidates for a call, with their predicted times");
  add_question(*why_command, flags);
  CLI::App* sim_command = app.add_subcommand("sim", "what a call would take on a described cluster");
  add_flags(*sim_command, flags.sim);
  CLI::App* calibrate_command =
      app.add_subcommand("calibrate", "measures link, copy and reduction speeds for the planner");
  calibrate_command->add_option("--out", flags.calibration_file, "file for TERN_CALIBRATION");
  try {
    app.parse(static_cast<int>(args.size()), args.data());
  } catch (const CLI::Success& e) {  // --help
    fmt::print(out, "{}", app.help());
    return kGood;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "tern: {} (--help lists the flags)\n", e.what());
    return kBadFlags;
  }
  if (info_command->parsed()) return print(info_answer(), flags, out);
  if (calibrate_command->parsed()) return print(calibrate_answer(flags), flags, out);
  if (sim_command->parsed()) return print(sim_answer(flags.sim), flags, out);
  if (!why_command->parsed() && !show_command->parsed()) {
    fmt::print(stderr,
               "tern: say what to do: info, plan show, why, sim, calibrate (--help lists the flags)\n");
    return kBadFlags;
  }
  return print(plan_answer(flags, why_command->parsed() ? why_report : plan_report), flags, out);
}

}  // namespace tern::tools
