#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace syncopate::cli {

/// Runs a sub-command and returns the exit code. Each add_ function adds its sub-command to the program.
using Command = std::function<int()>;

Command add_train(CLI::App& program, char** argv);
Command add_evaluate(CLI::App& program);
Command add_predict(CLI::App& program);
Command add_score(CLI::App& program);
Command add_tokenize(CLI::App& program);
Command add_compare(CLI::App& program);

}  // namespace syncopate::cli
