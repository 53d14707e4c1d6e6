#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "syncopate/spec/strategies.h"

namespace syncopate::report {

bool is_strategy(std::string_view name);

/// How workers of a strategy keep together; together where the name is not one of ours.
spec::Rhythm rhythm_of(std::string_view strategy);

/// What an arm is drawn and sorted by: "single", "synchronous", "compressed", "local", "asynchronous",
/// "pipeline" or "control".
std::string family_of(std::string_view strategy, std::string_view codec, std::string_view kind,
                      int64_t stages = 1);

}  // namespace syncopate::report
