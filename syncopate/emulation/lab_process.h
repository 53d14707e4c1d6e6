#pragma once

#include <signal.h>

#include <filesystem>
#include <string>

#include "syncopate/emulation/lab.h"

namespace syncopate::emulation {

/// What the processes of a lab share: made before the first fork.
struct LabSetup {
  const LabOptions& options;
  std::string name;
  std::filesystem::path socket;
  int outer_pid = 0;
  int status = -1;    ///< lines to the outer process; see tell_outer
  int lifeline = -1;  ///< bytes from it, each a signal that it got; at its end the outer process is gone
  sigset_t program_mask{};  ///< the signals that the program blocks
};

/// Removes the lab's socket, whether it had its name already or not.
void forget_socket(const LabSetup& setup);

/// "ready ...", "note ...", "error ...", "killed SIGNAL".
void tell_outer(const LabSetup& setup, const std::string& line);

/// The body of the process between: leaves the namespaces, starts the lab and waits. Never returns.
[[noreturn]] void be_the_keeper(const LabSetup& setup);

/// The body of a lab's first process, PID 1 of its namespace: makes the network, starts the program and ends
/// with it. Never returns.
[[noreturn]] void be_the_lab(const LabSetup& setup);

}  // namespace syncopate::emulation
