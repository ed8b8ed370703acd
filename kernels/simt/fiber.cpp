// makecontext() gives the fiber its stack once; after that _setjmp and _longjmp switch, because swapcontext()
// asks the kernel for the signal mask each time.
#include "kernels/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "runtime/base/status.h"

namespace tern::simt {
namespace {

constexpr size_t kStackBytes = size_t{64} << 10;

Mapping new_stack() {
  void* data =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TERN_CHECK(data != MAP_FAILED);
  return Mapping({static_cast<std::byte*>(data), kStackBytes});
}

}  // namespace

Fiber::Fiber(Entry entry, void* arg) : entry_(entry), arg_(arg), stack_(new_stack()) {
  TERN_CHECK(getcontext(&first_) == 0);
  first_.uc_stack = {.ss_sp = stack_.get().data, .ss_flags = 0, .ss_size = kStackBytes};
  first_.uc_link = nullptr;
  const auto address = reinterpret_cast<uint64_t>(this);
  makecontext(&first_, reinterpret_cast<void (*)()>(&Fiber::trampoline), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
}

void Fiber::trampoline(unsigned high, unsigned low) {
  // makecontext() passes only ints.
  const uint64_t address = static_cast<uint64_t>(high) << 32 | low;
  reinterpret_cast<Fiber*>(address)->loop();  // NOLINT(performance-no-int-to-ptr)
}

void Fiber::loop() {
  enter_stack(nullptr, &caller_stack_, &caller_stack_bytes_);
  for (;;) {
    entry_(arg_);
    round_ended_ = true;
    switch_to_caller();
  }
}

void Fiber::switch_to_caller() {
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, caller_stack_, caller_stack_bytes_);
  if (_setjmp(self_) == 0) _longjmp(caller_, 1);  // NOLINT(cert-err52-cpp): between stacks, nothing unwinds
  enter_stack(fake_stack, &caller_stack_, &caller_stack_bytes_);
}

void Fiber::pause() {
  switch_to_caller();
}

bool Fiber::resume() {
  round_ended_ = false;
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, stack_.get().data, kStackBytes);
  if (_setjmp(caller_) == 0) {
    if (started_) _longjmp(self_, 1);
    started_ = true;
    setcontext(&first_);  // in this frame, which the address sanitizer must not take for left
  }
  enter_stack(fake_stack, nullptr, nullptr);
  return round_ended_;
}

}  // namespace tern::simt
