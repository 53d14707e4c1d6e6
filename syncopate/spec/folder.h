#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "syncopate/record/run_folder.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {

/// Where a run goes. A new run takes `out`, or a fresh folder under runs/ named after the spec; a folder that
/// holds a run already is refused. A run that resumes takes the folder that holds it and must have the same
/// settings, save those that decide nothing. Throws ConfigError. Makes no folder.
record::RunFolder choose_folder(RunSpec& spec, const std::string& out, bool resume);

/// Lets `write` fill a model folder; it appears whole or not at all, in the place of one that was there.
void save_model(const std::filesystem::path& folder,
                const std::function<void(const std::filesystem::path&)>& write);

/// Makes the folder and writes spec.json into it.
void start_folder(const record::RunFolder& folder, RunSpec& spec);

}  // namespace syncopate::spec
