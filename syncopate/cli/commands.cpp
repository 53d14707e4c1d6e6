#include "syncopate/cli/commands.h"

#include <fmt/format.h>

#include "syncopate/base/version.h"
#include "syncopate/cli/help.h"

namespace syncopate::cli {

std::vector<std::pair<const CLI::App*, Command>> add_commands(Program& program, char** argv) {
  answer_help(program);
  const std::string commit = program_commit();
  program.app.set_version_flag(
      "--version",
      fmt::format("syncopate {}{}", program_version(), commit.empty() ? "" : fmt::format(" ({})", commit)),
      "show the version");
  program.app.require_subcommand(1);
  program.notes[&program.app] = {
      "Exit codes: 0 done, 2 bad setting, 3 bad data, 4 a worker was lost, 5 diverged, 70 internal error, "
      "130 "
      "interrupted."};
  program.examples[&program.app] = {
      "syncopate train --task supersense --model bert-tiny --strategy ddp --workers 2 --steps 200",
      "syncopate compare experiments/quickstart.toml"};
  std::vector<std::pair<const CLI::App*, Command>> commands;
  const auto add = [&](Command command) {
    commands.emplace_back(program.app.get_subcommands({}).back(), std::move(command));
  };
  add(add_train(program, argv));
  add(add_probe(program, argv));
  add(add_evaluate(program, argv));
  add(add_predict(program, argv));
  add(add_score(program));
  add(add_tokenize(program));
  add(add_compare(program));
  add(add_report(program));
  add(add_watch(program));
  add(add_lab(program, argv));
  add(add_network(program));
  add(add_simulate(program, argv));
  add(add_advise(program));
  add(add_plan(program));
  add(add_help(program));
  add(add_completion(program));
  add(add_manual(program));
  return commands;
}

}  // namespace syncopate::cli
