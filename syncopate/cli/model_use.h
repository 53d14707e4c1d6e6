#pragma once

#include <CLI/CLI.hpp>

#include "syncopate/run/score.h"

namespace syncopate::cli {

/// The options that `evaluate` and `predict` share.
void add_model_options(CLI::App& app, spec::ScoreSpec& spec);

}  // namespace syncopate::cli
