#pragma once

#include <string>

#include "syncopate/report/results.h"

namespace syncopate::report {

/// One line for each arm, below them what flags and failed checks mean, and the advice. At most 100 columns
/// wide where names are short. Nothing from a file can move the cursor or colour the screen.
std::string terminal_table(const Results& results);

}  // namespace syncopate::report
