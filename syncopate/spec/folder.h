#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "syncopate/record/run_folder.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {

/// Where a run goes. A new run takes `out`, or a fresh folder under runs/ named after the spec; a folder that
/// holds a run already is refused. A run that resumes takes the folder that holds it; see resume_settings.
/// Throws ConfigError. Makes no folder.
record::RunFolder choose_folder(RunSpec& spec, const std::string& out, bool resume);

/// Makes `spec` that of the run in the folder, going on: throws ConfigError unless it has the settings that
/// the run began with, save those that decide nothing and the number of workers. Where that changed, now or
/// when the run was resumed before, the global batch stays what it was.
void resume_settings(RunSpec& spec, const record::RunFolder& folder);

/// Lets `write` fill a model folder; it appears whole or not at all, in the place of one that was there.
void save_model(const std::filesystem::path& folder,
                const std::function<void(const std::filesystem::path&)>& write);

/// Makes the folder and writes spec.json into it. Of a run whose number of workers changed, that also says
/// under "began_with" what it was, so that the words of its first command are still known.
void start_folder(const record::RunFolder& folder, RunSpec& spec);

}  // namespace syncopate::spec
