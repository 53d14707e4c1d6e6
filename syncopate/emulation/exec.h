#pragma once

#include <string>
#include <vector>

#include "syncopate/emulation/lab.h"

namespace syncopate::emulation {

/// Of what waitpid says, as shells have it: 128 and the signal's number where one ended it.
int exit_code_of(int status);

/// Runs the command once per device of the lab that this process is in, each on its host, with the variables
/// that torchrun sets, and waits for all. The first that fails ends the others, and its exit code is
/// returned. SIGINT and SIGTERM are passed on; a second one kills. Throws ConfigError for a command that is
/// not there.
int run_on_every_device(const Inside& lab, const std::vector<std::string>& command);

}  // namespace syncopate::emulation
