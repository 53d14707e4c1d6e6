#pragma once

#include <optional>

#include "syncopate/parallel/replica.h"
#include "syncopate/record/record.h"
#include "syncopate/run/placement.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

/// What a step of a run that is done was to take on its network: from the run's own compute, what exchanges
/// cost on this machine (measured now, in about a second) and the links. None where a step's parts were not
/// measured, nothing was sent, or, with a note, what it needs could not be measured.
std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& spec, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const parallel::Replica& replica);

}  // namespace syncopate::run
