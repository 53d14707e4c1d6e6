#pragma once

#include <string>

#include "syncopate/lab/probe.h"

namespace syncopate::cli {

/// What `compare --dry-run` prints: the runs by arm, what is done, how long the rest takes.
std::string dry_run_table(const lab::Experiment& experiment, const lab::Plan& plan,
                          const std::vector<lab::Estimate>& estimates);

}  // namespace syncopate::cli
