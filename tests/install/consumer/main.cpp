// A user's program: the umbrella header, the installed library, and whatever ranks its launcher started.
#include <tern/tern.h>

#include <cstdio>
#include <vector>

// Every rank gives its number plus one; all must receive the sum.
static tern::Status run() {
  TERN_ASSIGN(const tern::Config config, tern::Config::from_environment());
  TERN_ASSIGN(const tern::World world, tern::World::from_environment(config));
  TERN_ASSIGN(tern::Communicator communicator, tern::Communicator::create(world));
  std::vector<float> values(1000, static_cast<float>(world.rank + 1));
  TERN_TRY(communicator.all_reduce(std::span<const float>(values), std::span(values), tern::Op::kSum));
  const auto expected = static_cast<float>(world.size * (world.size + 1) / 2);
  for (const float value : values) {
    if (value != expected) return tern::error(tern::Code::kInternal, "sum is {}, not {}", value, expected);
  }
  return {};
}

int main() {
  const tern::Status status = run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  return status.ok() ? 0 : 1;
}
