#pragma once

#include <string>

#include "syncopate/cli/program.h"

namespace syncopate::cli {

// Scripts that complete the program's commands, options and their values, one for each shell.
std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);
std::string fish_completion(const Program& program);

}  // namespace syncopate::cli
