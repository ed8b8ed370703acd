#include "trainer/stop_signal.h"

#include <unistd.h>

#include <csignal>

namespace tern::trainer {
namespace {

// Signal handlers can only reach globals; this is the one that the trainer has.
volatile std::sig_atomic_t g_stop_requested = 0;

void on_signal(int signal) {
  constexpr int kKilledBySignal = 128;  // the shell's convention
  if (g_stop_requested != 0) _exit(kKilledBySignal + signal);
  g_stop_requested = 1;
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool stop_requested() {
  return g_stop_requested != 0;
}

}  // namespace tern::trainer
