#include "runtime/bootstrap/host_id.h"

#include <unistd.h>

#include <array>
#include <fstream>

namespace tern {

std::string host_id_of_this_machine() {
  std::string boot_id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  return boot_id + "/" + name.data();
}

}  // namespace tern
