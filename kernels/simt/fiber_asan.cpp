#include <sanitizer/common_interface_defs.h>

#include "kernels/simt/fiber.h"

namespace tern::simt {

void leave_stack(void** fake_stack, const void* to, size_t n_bytes) {
  __sanitizer_start_switch_fiber(fake_stack, to, n_bytes);
}
void enter_stack(void* fake_stack, const void** from, size_t* n_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, from, n_bytes);
}

}  // namespace tern::simt
