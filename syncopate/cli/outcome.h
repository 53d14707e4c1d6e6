#pragma once

#include "syncopate/run/launch.h"

namespace syncopate::cli {

/// The exit code of processes that were started, whose failure it tells.
int outcome(const run::LaunchResult& result);

}  // namespace syncopate::cli
