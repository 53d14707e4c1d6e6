#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/last_words.h"
#include "syncopate/run/launch.h"

namespace syncopate::cli {
namespace {

int complain(const std::string& sentence, ExitCode code) {
  if (!sentence.empty()) tell("syncopate: {}", sentence);
  return static_cast<int>(code);
}

/// Replaces CLI11's "The following argument was not expected: --stratgy" by a suggestion.
std::string parse_complaint(const CLI::App& program, const CLI::ParseError& error, int argc, char** argv) {
  const auto chosen = program.get_subcommands();
  std::vector<std::string> known;
  if (chosen.empty()) {
    for (const CLI::App* command : program.get_subcommands({})) known.push_back(command->get_name());
    if (argc > 1 && argv[1][0] != '-')
      return fmt::format("unknown command {}{}", argv[1], suggestion(argv[1], known));
    return fmt::format("{}; see --help", error.what());
  }
  for (const CLI::Option* option : chosen.front()->get_options())
    known.push_back("--" + option->get_single_name());
  for (int i = 2; dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && i < argc; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    if (!name.starts_with("-") || std::string(error.what()).find(word) == std::string::npos) continue;
    const auto near = nearest(name, known);
    return fmt::format("unknown option {}{}", name,
                       near ? fmt::format("; did you mean {}?", *near) : "; see --help");
  }
  return fmt::format("{}; see --help", error.what());
}

int run(int argc, char** argv) {
  Program program{.app = CLI::App{kPurpose, "syncopate"}};
  const auto commands = add_commands(program, argv);
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return program.app.exit(success);
  } catch (const CLI::ParseError& error) {
    return complain(parse_complaint(program.app, error, argc, argv), ExitCode::kConfig);
  }
  for (const auto& [app, command] : commands) {
    if (app->parsed()) return command();
  }
  return 0;
}

}  // namespace
}  // namespace syncopate::cli

int main(int argc, char** argv) {
  using namespace syncopate;
  int code = 0;
  try {
    run::speak_before_terminating();
    run::die_with_parent();
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command == "train" || command == "probe" || command == "evaluate" || command == "predict")
      run::prepare_process(argv);
    code = cli::run(argc, argv);
  } catch (const Error& error) {
    code = cli::complain(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    code = cli::complain(fmt::format("{}; check the path", error.what()), ExitCode::kData);
  } catch (const std::exception& error) {
    code = cli::complain(fmt::format("unexpected failure: {}; please report it", first_line(error.what())),
                         ExitCode::kInternal);
  }
  // Communication threads may still wait for lost peers: exit without joining them.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == 0) {
    code = cli::complain("cannot write to standard output: is the disk full?", ExitCode::kData);
  }
  std::fflush(stderr);
  ::_exit(code);
}
