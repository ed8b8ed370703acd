#include "bench/flags.h"

#include <cstdio>
#include <filesystem>

namespace tern::bench {

void prepare_flags(CLI::App& app) {
  app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Result<std::string> parse_flags(CLI::App& app, std::span<const char* const> args) {
  try {
    app.parse(static_cast<int>(args.size()), args.data());
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ArgumentMismatch& e) {
    // The library counts arguments and describes their type; that one is missing says as much.
    const std::string_view what = e.what();
    return error(Code::kInvalidArgument, "{} needs a value (--help lists the flags)",
                 what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& e) {
    return error(Code::kInvalidArgument, "{} (--help lists the flags)", e.what());
  }
  return std::string();
}

std::optional<int> end_at_flags(CLI::App& app, std::span<const char* const> args) {
  constexpr int kBadFlags = 2;
  const Result<std::string> help = parse_flags(app, args);
  if (help.ok() && help->empty()) return std::nullopt;
  if (help.ok()) {
    std::fputs(help->c_str(), stdout);
    return 0;
  }
  const std::string program = std::filesystem::path(args.empty() ? "bench" : args[0]).filename();
  fmt::print(stderr, "{}: {}\n", program, help.error().message);
  return kBadFlags;
}

}  // namespace tern::bench
