#pragma once

#include <string>
#include <vector>

#include "syncopate/record/record.h"

namespace syncopate::run {

/// What a run came to, for people, in a few lines: quality, time and its parts, traffic, where the model is
/// and the command that evaluates it.
std::vector<std::string> summary_of(const record::RunRecord& record);

}  // namespace syncopate::run
