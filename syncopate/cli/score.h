#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace syncopate::cli {

/// What `evaluate` and `predict` share.
struct ScoreArguments {
  std::string task, data, model;
  int64_t max_length = 0;
  int64_t batch_size = 64;
  int64_t threads = 0;
};

void add_score_options(CLI::App& app, ScoreArguments& arguments);

}  // namespace syncopate::cli
