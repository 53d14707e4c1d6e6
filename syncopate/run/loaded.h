#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "syncopate/tasks/setup.h"

// What a run has loaded: compared between ranks, and recorded.
namespace syncopate::run {

/// Of the training, test and validation examples.
std::string hash_of(const tasks::TaskSetup& setup);

/// All that must be alike on all ranks, a line each; where it lies may differ.
std::string in_words(const tasks::TaskSetup& setup);

/// What a checkpoint says that its run was fed with. `hash` as above, which takes a while for large data.
nlohmann::ordered_json inputs_of(const tasks::TaskSetup& setup, const std::string& hash);

}  // namespace syncopate::run
