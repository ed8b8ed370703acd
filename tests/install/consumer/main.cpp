// A user's program: only the umbrella header and the installed library.
#include <tern/tern.h>

#include <array>
#include <cstdio>

int main() {
  const tern::Result<tern::Config> config = tern::Config::from_environment();
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.error().to_string().c_str());
    return 1;
  }
  const std::array<std::byte, 3> bytes = {};
  std::printf("timeout %g s, checksum %08x\n", config->timeout.count(), tern::crc32c(bytes));
  return 0;
}
