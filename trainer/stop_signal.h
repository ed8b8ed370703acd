// SIGINT and SIGTERM: the first asks the run to stop after its step, the second stops the process.
#pragma once

namespace tern::trainer {

/// Takes both signals over for the process, and ignores SIGPIPE and SIGXFSZ so that writes report errors
/// instead.
void catch_stop_signals();

/// True once a signal has come.
bool stop_requested();

}  // namespace tern::trainer
