#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "syncopate/cli/program.h"

namespace syncopate::cli {

/// Runs a sub-command and returns the exit code. Each add_ function adds its sub-command to the program.
using Command = std::function<int()>;

Command add_train(Program& program, char** argv);
Command add_probe(Program& program, char** argv);
Command add_evaluate(Program& program, char** argv);
Command add_predict(Program& program, char** argv);
Command add_score(Program& program);
Command add_tokenize(Program& program);
Command add_compare(Program& program);
Command add_report(Program& program);
Command add_watch(Program& program);
Command add_lab(Program& program, char** argv);
Command add_network(Program& program);
Command add_simulate(Program& program, char** argv);
Command add_advise(Program& program);
Command add_plan(Program& program);
Command add_help(Program& program);
Command add_completion(Program& program);
Command add_manual(Program& program);

constexpr const char* kPurpose =
    "Distributed training on libtorch: train a model under any synchronisation strategy and compare "
    "strategies";

/// All of them, and what runs each. `program` has to stay where it is.
std::vector<std::pair<const CLI::App*, Command>> add_commands(Program& program, char** argv);

}  // namespace syncopate::cli
