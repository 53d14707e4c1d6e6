#pragma once

#include <string>

#include "syncopate/cli/program.h"

namespace syncopate::cli {

/// The manual page, in roff with the man macros.
std::string manual(const Program& program);

}  // namespace syncopate::cli
