#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/file.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/lab/experiment.h"
#include "syncopate/lab/sweep.h"
#include "syncopate/report/analyse.h"
#include "syncopate/report/terminal.h"

namespace syncopate::cli {
namespace {

int compare(const std::string& file, const std::string& out) {
  const lab::Experiment experiment = lab::read_experiment(file);
  const std::filesystem::path folder =
      out.empty() ? std::filesystem::path("runs") / std::filesystem::path(file).stem()
                  : std::filesystem::path(out);
  make_folder(folder);
  tell("{}{}", experiment.title, experiment.cost.empty() ? "" : " (" + experiment.cost + ")");
  const lab::SweepResult result =
      lab::sweep(experiment, folder, [](const std::string& line) { tell("{}", line); });
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  for (const lab::SweepRow& row : result.rows) {
    records.push_back(row.record ? record::to_json(*row.record) : nlohmann::ordered_json());
  }
  if (!result.rows.empty()) {
    const std::string table = report::terminal_table(report::analyse(folder));
    write_file_atomically(folder / "comparison.txt", table);
    write_file_atomically(folder / "comparison.json", records.dump(2) + "\n");
    fmt::print("\n{}", table);
    const auto reused =
        std::count_if(result.rows.begin(), result.rows.end(), [](const auto& row) { return row.reused; });
    if (reused > 0) {
      tell("{} of {} rows were done before; remove {} to run them again", reused, result.rows.size(),
           folder.string());
    }
  }
  return result.exit_code;
}

}  // namespace

Command add_compare(Program& program) {
  struct Arguments {
    std::string file, out;
  };
  CLI::App* app = program.app.add_subcommand(
      "compare", "Run an experiment file: several strategies on the same data, initial weights and budget");
  auto arguments = std::make_shared<Arguments>();
  app->add_option("file", arguments->file, "experiment file (TOML)")->required()->type_name("FILE");
  app->add_option("--out", arguments->out, "folder for the runs (default: runs/<name of the file>)")
      ->group("Output")
      ->type_name("FOLDER");
  program.notes[app] = {"Rows that are already finished in the folder are not run again."};
  program.examples[app] = {"syncopate compare experiments/quickstart.toml"};
  return [arguments] { return compare(arguments->file, arguments->out); };
}

}  // namespace syncopate::cli
