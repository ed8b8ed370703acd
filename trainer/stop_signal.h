// SIGINT and SIGTERM: the first asks the run to stop after its step, the second stops the process.
#pragma once

namespace tern::trainer {

/// Takes both signals over for the process, and ignores SIGPIPE and SIGXFSZ so that writes report errors
/// instead. Call it once, before there is another thread: threads made later inherit what it blocks.
void catch_stop_signals();

/// From now on the first signal is a request; until then each stops the process.
void let_steps_end();

/// True once a signal has come.
bool stop_requested();

}  // namespace tern::trainer
