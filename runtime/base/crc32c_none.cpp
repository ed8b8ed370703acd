// Processors without a CRC32C instruction that Tern knows.
#include "runtime/base/crc32c.h"

namespace tern {

Crc32cFunction crc32c_hardware() {
  return nullptr;
}

}  // namespace tern
