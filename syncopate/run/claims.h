#pragma once

#include <string>

#include "syncopate/lifeline/claims.h"
#include "syncopate/run/world.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

/// What every rank of a run must have alike, for the rendezvous: its settings, the program's version, and
/// which run it is (the launcher's job, `--out` where it is given).
lifeline::Claims claims_of(const spec::RunSpec& spec, const World& world, const std::string& out,
                           bool resume);

}  // namespace syncopate::run
