#include "syncopate/cli/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "syncopate/base/error.h"

namespace syncopate::cli {
namespace {

volatile sig_atomic_t signals_seen = 0;
volatile sig_atomic_t hangup_alone = 0;  ///< nothing else has come
timespec first_seen{};

void on_signal(int number) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  // A closed terminal asks once and does not insist: who asks after it is the first to ask.
  const bool first = signals_seen == 0 || hangup_alone;
  hangup_alone = first && number == SIGHUP;
  if (first) {
    first_seen = now;
    signals_seen = 1;
    return;
  }
  if (number == SIGHUP) return;
  // One Ctrl-C may arrive twice: from the terminal and from a launcher such as torchrun.
  constexpr double kEchoSeconds = 0.25;
  const double passed = static_cast<double>(now.tv_sec - first_seen.tv_sec) +
                        1e-9 * static_cast<double>(now.tv_nsec - first_seen.tv_nsec);
  if (passed > kEchoSeconds) ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction inherited {};
  ::sigaction(SIGHUP, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup stays nohup
  ::signal(SIGPIPE, SIG_IGN);  // a reader that has gone must not end a run that could save
}

bool interrupted() { return signals_seen > 0; }

}  // namespace syncopate::cli
