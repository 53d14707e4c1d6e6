#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/notes.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/model_use.h"
#include "syncopate/record/record.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/tasks.h"
#include "syncopate/tasks/score_file.h"

namespace syncopate::cli {

Command add_score(Program& program) {
  struct Arguments {
    tasks::PredictionsFile file;
    bool json = false;
  };
  CLI::App* app =
      program.app.add_subcommand("score", "Score predictions against a data file, without a model");
  auto arguments = std::make_shared<Arguments>();
  const auto in = [](CLI::Option* option, const char* group, const char* type) {
    return option->group(group)->type_name(type);
  };
  constexpr const char* kData = "Predictions and data";
  in(app->add_option("--predictions", arguments->file.predictions,
                     "output of `predict`; for squad, {\"id\": \"answer\", ...}")
         ->required(),
     kData, "FILE");
  program
      .choices[in(app->add_option("--task", arguments->file.task, "what the predictions are for")->required(),
                  kData, "TASK")] = spec::task_names();
  in(app->add_option("--data", arguments->file.data,
                     "the data with the right answers (default: the task's built-in data)"),
     kData, "PATH");
  in(app->add_option("--text", arguments->file.columns.text, "csv: the column with the text"), kData,
     "COLUMN");
  in(app->add_option("--text-pair", arguments->file.columns.text_pair,
                     "csv: the column with a second text, if there is one"),
     kData, "COLUMN");
  in(app->add_option("--label", arguments->file.columns.label, "csv: the column with the label"), kData,
     "COLUMN");
  in(app->add_option("--encoding", arguments->file.columns.encoding,
                     "of text files: utf-8, another that iconv knows (latin-1, windows-1252), or replace")
         ->capture_default_str(),
     kData, "ENCODING");
  in(app->add_option("--separator", arguments->file.columns.separator,
                     "of a table's columns: one character, tab, or auto")
         ->capture_default_str(),
     kData, "CHARACTER");
  app->add_flag("--json", arguments->json, "print the score as one line of JSON")->group("Output");
  program.notes[app] = {
      "squad, definition-qa: exact_match and f1 in per cent, as in SQuAD's script. Other tasks: accuracy and "
      "macro_f1. The rows that count are those that `evaluate` counts."};
  program.examples[app] = {
      "syncopate score --task squad --data dev-v1.1.json --predictions answers.json --json"};
  arguments->file.note = [](const std::string& note) { tell("{}", note_line(note)); };
  return [arguments, app] {
    spec::require_effect_on_task(arguments->file.task, given_flags(*app));
    const auto measures = tasks::score_file(arguments->file);
    nlohmann::ordered_json json;
    std::string line;
    for (const auto& [name, value] : measures) {
      if (name == "total" || name == "missing") continue;
      json[name] = value;
      line +=
          fmt::format("{}{} {}", line.empty() ? "" : " · ", name, record::measure_for_people(name, value));
    }
    for (const char* name : {"total", "missing"}) json[name] = std::llround(measures.at(name));
    if (arguments->json) {
      fmt::print("{}\n", json.dump());
    } else {
      fmt::print("{} · {} examples{}\n", line, json["total"].dump(),
                 json["missing"] == 0
                     ? ""
                     : fmt::format(", {} of them without a prediction", json["missing"].dump()));
    }
    return 0;
  };
}

}  // namespace syncopate::cli
