#include "kernels/simt/fiber.h"

namespace tern::simt {

void leave_stack(void** /*fake_stack*/, const void* /*to*/, size_t /*n_bytes*/) {}
void enter_stack(void* /*fake_stack*/, const void** /*from*/, size_t* /*n_bytes*/) {}

}  // namespace tern::simt
