#pragma once

#include "syncopate/comm/metering/metered.h"
#include "syncopate/record/record.h"

// Parts of the record of a run that is done.
namespace syncopate::run {

/// What was sent in a step. `sent` is a sum over `made` steps.
void note_traffic(const comm::Meter& sent, double made, record::RunRecord& record);

/// Takes over what `before` tells of the machine that trained, and of the time it took.
void keep_circumstances(const record::RunRecord& before, record::RunRecord& record);

}  // namespace syncopate::run
