#include "syncopate/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "syncopate/base/error.h"

namespace syncopate::cli {
namespace {

volatile sig_atomic_t signals_seen = 0;

void on_signal(int) {
  signals_seen = signals_seen + 1;
  if (signals_seen > 1) ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return signals_seen > 0; }

}  // namespace syncopate::cli
