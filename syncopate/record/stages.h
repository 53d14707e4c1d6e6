#pragma once

#include <vector>

#include "syncopate/record/record.h"

namespace syncopate::record {

/// Field by field, of records of one stage; ranks and blocks are the first one's. There is at least one.
StageRecord mean_of(const std::vector<StageRecord>& stages);

double busy_ms(const StageRecord& stage);     ///< computes, codes or updates
double waiting_ms(const StageRecord& stage);  ///< is blocked by other stages

}  // namespace syncopate::record
