#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/folder_lock.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/dry_run.h"
#include "syncopate/cli/interrupt.h"
#include "syncopate/lab/experiment.h"
#include "syncopate/lab/sweep.h"
#include "syncopate/report/analyse.h"
#include "syncopate/report/files/files.h"
#include "syncopate/report/terminal.h"
#include "syncopate/text/encoding.h"

namespace syncopate::cli {
namespace {

struct CompareArguments {
  std::string file, out, size;
  std::vector<std::string> data, set;
  bool dry_run = false, again = false;
  int jobs = 1;
  int64_t most_runs = 10000;
};

/// What settings say goes into JSON, which is UTF-8.
void require_utf8(const char* what, const std::string& text) {
  if (text::first_not_utf8(text) == std::string::npos) return;
  throw ConfigError("{} \"{}\" is not UTF-8; rename it, or reach it by a link whose name is", what, text);
}

std::vector<std::pair<std::string, std::string>> assignments(const char* flag, const char* form,
                                                             const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError("{} is given as {}, got \"{}\"", flag, form, word);
    require_utf8(flag, word);
    found.emplace_back(trim(std::string_view(word).substr(0, equals)),
                       trim(std::string_view(word).substr(equals + 1)));
  }
  return found;
}

/// A size has a folder of its own: it is another experiment.
std::filesystem::path folder_for(const CompareArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  const std::string name = std::filesystem::path(arguments.file).stem().string();
  return std::filesystem::path("runs") / (arguments.size.empty() ? name : name + "-" + arguments.size);
}

std::atomic<bool> pause_asked{false};
void on_pause(int) { pause_asked = true; }

/// What people read at the end: the table, and where the page is.
void conclude(const std::filesystem::path& folder) {
  const report::Results results = report::analyse(folder);
  report::write_results(folder, results);
  fmt::print("\n{}", report::terminal_table(results));
  std::fflush(stdout);  // before what goes to standard error
  tell("the page: {}; also results.csv, .json, .md and .xlsx beside it", (folder / "report.html").string());
}

int dry_run(const lab::Experiment& experiment, const std::filesystem::path& folder, bool again) {
  const lab::Plan plan = lab::survey(experiment, folder, again);
  catch_interrupts();
  const auto runner = lab::process_runner();
  const auto estimates = lab::estimate(
      plan, {.stop_requested = interrupted, .say = [](const std::string& line) { tell("{}", line); }},
      *runner);
  if (interrupted()) return static_cast<int>(ExitCode::kInterrupted);
  fmt::print("{}", dry_run_table(experiment, plan, estimates));
  return 0;
}

int compare(const CompareArguments& arguments) {
  if (arguments.jobs < 1) throw ConfigError("--jobs must be 1 or more, got {}", arguments.jobs);
  const lab::Experiment experiment =
      lab::read_experiment(arguments.file, {.size = arguments.size,
                                            .data = assignments("--data", "NAME=PATH", arguments.data),
                                            .set = assignments("--set", "NAME=VALUE", arguments.set),
                                            .most_runs = arguments.most_runs});
  const std::filesystem::path folder = folder_for(arguments);
  if (arguments.out.empty() && text::first_not_utf8(folder.string()) != std::string::npos) {
    throw ConfigError(
        "the name of {} is not UTF-8, and its runs would lie in a folder of that name; rename it or "
        "give --out",
        arguments.file);
  }
  require_utf8("--out", folder.string());
  lab::require_inputs(experiment);
  tell("{}{}", experiment.title, experiment.cost.empty() ? "" : " (" + experiment.cost + ")");
  if (arguments.dry_run) return dry_run(experiment, folder, arguments.again);
  std::string holder;
  const auto lock = FolderLock::take(folder, {.purpose = "syncopate compare " + arguments.file}, &holder);
  if (!lock) {
    throw ConfigError("{} is in use by {}; wait until that is done, stop it, or choose another --out",
                      folder.string(), holder);
  }
  tell("watch: syncopate watch {}", shell_word(folder.string()));
  catch_interrupts();
  ::signal(SIGTSTP, on_pause);
  const auto runner = lab::process_runner();
  const lab::SweepResult result = lab::sweep(experiment, folder,
                                             {.jobs = arguments.jobs,
                                              .again = arguments.again,
                                              .stop_requested = interrupted,
                                              .pause_requested = [] { return pause_asked.exchange(false); },
                                              .say = [](const std::string& line) { tell("{}", line); },
                                              .progress = Progress::style_for_stderr()},
                                             *runner);
  conclude(folder);
  if (result.exit_code == static_cast<int>(ExitCode::kInterrupted))
    tell("stopped; the same command goes on from here");
  return result.exit_code;
}

}  // namespace

Command add_compare(Program& program) {
  CLI::App* app = program.app.add_subcommand(
      "compare", "Run an experiment file: several strategies on the same data, initial weights and budget");
  auto arguments = std::make_shared<CompareArguments>();
  app->add_option("file", arguments->file, "experiment file (TOML)")->required()->type_name("FILE");
  const auto option = [&](const char* group, const char* type, const char* name, auto& target,
                          const char* help) {
    return app->add_option(name, target, help)->group(group)->type_name(type);
  };
  option("Experiment", "NAME", "--size", arguments->size, "lay the file's [size.NAME] over it: a GPU's, say");
  option("Experiment", "NAME=PATH", "--data", arguments->data,
         "where the data (or model) is that the file calls {NAME}; can be repeated")
      ->allow_extra_args(false);
  option("Experiment", "NAME=VALUE", "--set", arguments->set,
         "a setting for all runs that heed it, or the values of an axis (seed=1,2); can be repeated")
      ->allow_extra_args(false);
  option("Experiment", "INT", "--max-runs", arguments->most_runs, "refuse a file that makes more runs")
      ->default_str("10000");
  app->add_flag("--dry-run", arguments->dry_run,
                "list the runs, what is done and what the rest costs, from a few steps of each kind")
      ->group("Running");
  option("Running", "INT", "--jobs", arguments->jobs,
         "runs side by side: tuning and phases; rows only where each has cores of its own")
      ->default_str("1");
  app->add_flag("--again", arguments->again, "run again what another version of the program made")
      ->group("Running");
  option("Output", "FOLDER", "--out", arguments->out,
         "folder for the runs (default: runs/<name of the file>, with -<size> behind it)");
  program.notes[app] = {
      "Runs that are finished in the folder with the same settings, data and start are not repeated; the "
      "same "
      "command goes on where one was stopped. A run that fails or diverges is recorded, and the others go "
      "on."};
  program.examples[app] = {"syncopate compare experiments/quickstart.toml",
                           "syncopate compare experiments/rhythms.toml --dry-run"};
  return [arguments] { return compare(*arguments); };
}

}  // namespace syncopate::cli
