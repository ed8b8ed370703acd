// A stack of its own that a thread steps onto and off again: how one processor plays all threads of a block.
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

#include "runtime/base/handle.h"

namespace tern::simt {

/// Runs `entry(arg)` over and over, once per round, each round in as many pieces as it calls pause().
///
/// Not movable: the fiber's own stack points at it. Used by the thread that made it only. `entry` must return
/// and throw nothing. Switching costs a setjmp and a longjmp, no system call.
class Fiber {
 public:
  using Entry = void (*)(void*);

  Fiber(Entry entry, void* arg);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  /// Runs on from where the fiber paused, or starts the next round. Returns whether the round has ended.
  bool resume();
  /// Called on the fiber: returns to whoever resumed it.
  void pause();

 private:
  static void trampoline(unsigned high, unsigned low);
  [[noreturn]] void loop();
  void switch_to_caller();

  Entry entry_;
  void* arg_;
  Mapping stack_;
  ucontext_t first_;  // the state that the fiber starts from
  bool started_ = false;
  bool round_ended_ = false;
  std::jmp_buf caller_;
  std::jmp_buf self_;
  const void* caller_stack_ = nullptr;  // for the address sanitizer, as the two below
  size_t caller_stack_bytes_ = 0;
};

/// What the address sanitizer must hear before and after the stack changes; nothing in other builds
/// (fiber_plain.cpp).
void leave_stack(void** fake_stack, const void* to, size_t n_bytes);
void enter_stack(void* fake_stack, const void** from, size_t* n_bytes);

}  // namespace tern::simt
