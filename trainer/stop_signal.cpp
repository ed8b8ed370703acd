#include "trainer/stop_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace tern::trainer {
namespace {

// What the watching thread and the training loop share; nobody can hand it to a signal.
std::atomic<bool> g_steps_run = false;
std::atomic<bool> g_stop_requested = false;

void watch(sigset_t stops) {
  constexpr int kKilledBySignal = 128;  // the shell's convention
  for (int signal = 0; sigwait(&stops, &signal) == 0;) {
    if (!g_steps_run || g_stop_requested.exchange(true)) _exit(kKilledBySignal + signal);
  }
}

}  // namespace

// The signals are blocked everywhere and taken by a thread that does nothing else. A handler would interrupt
// whichever thread the system likes: oneDNN's generated sgemm kernels use the stack pointer as they please,
// and the frame of a handler that came at such a moment lay in the middle of the heap.
void catch_stop_signals() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  std::thread(watch, stops).detach();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void let_steps_end() {
  g_steps_run = true;
}

bool stop_requested() {
  return g_stop_requested.load();
}

}  // namespace tern::trainer
