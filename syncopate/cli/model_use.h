#pragma once

#include <string>
#include <vector>

#include "syncopate/cli/outcome.h"
#include "syncopate/cli/program.h"
#include "syncopate/run/score.h"
#include "syncopate/run/score_stages.h"

namespace syncopate::cli {

// Titles under which the options of commands that use a model stand in their help.
constexpr const char* kModelAndData = "Model and data";
constexpr const char* kComputing = "Computing";
constexpr const char* kOutput = "Output";

/// The options that `evaluate` and `predict` share.
void add_model_options(Program& program, CLI::App& app, spec::ScoreSpec& spec);

/// Reads a whole number above 0, or "auto", which is 0.
CLI::Option* add_count(CLI::App& app, const std::string& flag, int64_t& value, const std::string& help);

/// The options that were given, without dashes.
std::vector<std::string> given_flags(const CLI::App& app);

/// Takes what was not given from the run that trained the model; throws ConfigError for what was given and
/// means nothing to the task.
void complete(const CLI::App& app, spec::ScoreSpec& spec, bool predict);

}  // namespace syncopate::cli
