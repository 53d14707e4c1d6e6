#pragma once

#include <memory>
#include <string>

#include "syncopate/cli/program.h"

namespace syncopate::cli {

/// The help of a command in lines of at most `columns`; `all`: with every setting that --set takes.
std::string help_text(const CommandText& command, size_t columns, bool all);

/// That of the program: what it is for and its commands.
std::string program_help(const Program& program, size_t columns, bool all);

/// Lets the parser answer --help and --help-all with these, as wide as the terminal. `program` must outlive
/// its parser.
void answer_help(Program& program);

}  // namespace syncopate::cli
