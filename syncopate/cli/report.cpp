#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/report/analyse.h"
#include "syncopate/report/files/files.h"
#include "syncopate/report/terminal.h"

namespace syncopate::cli {

Command add_report(Program& program) {
  struct Arguments {
    std::string folder, out;
  };
  CLI::App* app = program.app.add_subcommand(
      "report", "Compare the runs in a folder: a table, a page, and files for pandas and spreadsheets");
  auto arguments = std::make_shared<Arguments>();
  app->add_option("folder", arguments->folder,
                  "folder of `compare`, `advise` or `plan`, folder of runs, or one run's")
      ->required()
      ->type_name("FOLDER");
  app->add_option("--out", arguments->out, "where the page goes (default: FOLDER/report.html)")
      ->group("Output")
      ->type_name("FILE");
  program.notes[app] = {
      "Writes report.html, results.csv, results.json, results.md and results.xlsx into the folder. Runs that "
      "cannot be read are named and left out.",
      "advice.json and *.placement.json files in the folder (`advise --out`, `plan --out`) are drawn beside "
      "the runs, or "
      "alone.",
      "What is checked, and what each note means, is in docs/comparing.md."};
  program.examples[app] = {"syncopate report runs/quickstart",
                           "syncopate report runs/quickstart --out page.html"};
  return [arguments] {
    const std::filesystem::path folder = arguments->folder;
    const report::Results results = report::analyse(folder);
    report::write_results(folder, results, {.page_at = arguments->out});
    fmt::print("{}", report::terminal_table(results));
    std::fflush(stdout);  // before what goes to standard error
    const std::filesystem::path page =
        arguments->out.empty() ? folder / "report.html" : std::filesystem::path(arguments->out);
    tell("the page: {}; also results.csv, .json, .md and .xlsx in {}", page.string(), folder.string());
    return 0;
  };
}

}  // namespace syncopate::cli
