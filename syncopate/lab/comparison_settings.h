#pragma once

#include <nlohmann/json_fwd.hpp>

#include "syncopate/lab/experiment.h"

namespace syncopate::lab {

/// Reads [tune], [target] and [compare] into the experiment, whose arms are there, and adds what they ask
/// for: which arms are tuned, serial controls. Throws ConfigError.
void read_comparison(const nlohmann::ordered_json& file, Experiment& experiment);

}  // namespace syncopate::lab
