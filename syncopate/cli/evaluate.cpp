#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/fields.h"
#include "syncopate/base/file.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/model_use.h"
#include "syncopate/run/placement.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/recorded.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::cli {

CLI::Option* add_count(CLI::App& app, const std::string& flag, int64_t& value, const std::string& help) {
  const auto read = [&value, flag](const std::string& text) {
    Fields fields;
    fields.add(flag, value, "", flag).zero_is("auto");
    fields.set(flag, text);
  };
  return app.add_option_function<std::string>("--" + flag, read, help)
      ->take_last()
      ->type_name("INT")
      ->default_str("auto");
}

void add_model_options(Program& program, CLI::App& app, spec::ScoreSpec& spec) {
  const auto in = [](CLI::Option* option, const char* group, const char* type) {
    return option->group(group)->type_name(type);
  };
  in(app.add_option("--model", spec.model,
                    "a run's folder, its model/ folder, or a Hugging Face model folder")
         ->required(),
     kModelAndData, "FOLDER");
  CLI::Option* task = in(app.add_option("--task", spec.task,
                                        "what the model was trained on (default: as the run's folder says)"),
                         kModelAndData, "TASK");
  program.choices[task] = spec::task_names();
  in(app.add_option("--data", spec.data,
                    "the data (default: the run's own test data, or the task's built-in data)"),
     kModelAndData, "PATH");
  in(app.add_option("--text", spec.columns.text,
                    "csv, mlm, clm: the column with the text (default: the run's)"),
     kModelAndData, "COLUMN");
  in(app.add_option("--text-pair", spec.columns.text_pair,
                    "csv: the column with a second text, if there is one (default: the run's)"),
     kModelAndData, "COLUMN");
  in(app.add_option("--label", spec.columns.label, "csv: the column with the label (default: the run's)"),
     kModelAndData, "COLUMN");
  in(app.add_option(
         "--encoding", spec.columns.encoding,
         "of text files: utf-8, another that iconv knows (latin-1, windows-1252), or replace (default: "
         "the run's, or utf-8)"),
     kModelAndData, "ENCODING");
  in(app.add_option("--separator", spec.columns.separator,
                    "of a table's columns: one character, tab, or auto (default: the run's, or auto)"),
     kModelAndData, "CHARACTER");
  add_count(app, "max-length", spec.max_length, "maximum tokens per example (auto: as in training)")
      ->group(kModelAndData);
  in(app.add_option("--stride", spec.stride,
                    "squad: tokens by which the windows of a long text overlap (default: the run's, or 128)"),
     kModelAndData, "INT");
  in(app.add_option(
         "--seed", spec.seed,
         "seed of the masks (evaluate, mlm) or of sampling (predict, clm) (default: the run's, or 0)"),
     kModelAndData, "INT");
  add_count(app, "batch-size", spec.batch_size, "examples per batch (auto: depends on the task)")
      ->group(kComputing);
  add_count(app, "threads", spec.threads, "number of threads (auto: all cores)")->group(kComputing);
  in(app.add_option("--stages", spec.stages,
                    "cut the model into so many stages, each in a process of its own (started here, or by a "
                    "launcher)")
         ->capture_default_str(),
     kComputing, "INT");
  in(app.add_option("--device", spec.device, "cpu, cuda or cuda:1")->capture_default_str(), kComputing,
     "DEVICE");
  CLI::Option* precision =
      in(app.add_option("--precision", spec.precision, "precision of matrix products")->capture_default_str(),
         kComputing, "PRECISION");
  program.choices[precision] = spec::precision_names();
}

std::vector<std::string> given_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->nonpositional()) flags.push_back(option->get_lnames().front());
  }
  return flags;
}

void complete(const CLI::App& app, spec::ScoreSpec& spec, bool predict) {
  const auto given = [&](const std::string& flag) {
    const CLI::Option* option = app.get_option_no_throw("--" + flag);
    return option != nullptr && option->count() > 0;
  };
  spec::complete_from_run(spec, given, predict);
  spec::require_effect_on_task(spec.task, given_flags(app));
}

Command add_evaluate(Program& program, char** argv) {
  struct Arguments {
    spec::ScoreSpec spec;
    bool json = false;
    std::string out;
    spec::RunSpec place;  ///< its network: evaluate sits on its first host
  };
  CLI::App* app = program.app.add_subcommand("evaluate", "Evaluate a model on test data");
  auto arguments = std::make_shared<Arguments>();
  add_model_options(program, *app, arguments->spec);
  CLI::Option* documents =
      app->add_option("--documents", arguments->spec.documents,
                      "mlm, clm: how documents are separated (line: each line is one; blank: "
                      "by blank lines; default: the run's, or auto)");
  program.choices[documents->group(kModelAndData)->type_name("TEXT")] = {"auto", "line", "blank"};
  app->add_option("--mask-rate", arguments->spec.mask_rate,
                  "mlm: fraction of the words to predict (default: the run's, or 0.15)")
      ->group(kModelAndData)
      ->type_name("FLOAT");
  app->add_flag("--whole-words", arguments->spec.whole_words,
                "mlm: mask all pieces of a word together (default: as the run did)")
      ->group(kModelAndData);
  const auto network = [&](const char* type, const char* name, auto& target, const char* help) {
    app->add_option(name, target, help)->group(kComputing)->type_name(type);
  };
  network("FILE|PRESET", "--network", arguments->place.network.name,
          "evaluate on a host of this network, on one machine: a cluster file or a preset");
  network("A,B,...", "--hosts", arguments->place.network.hosts, "hosts to choose from: the first is taken");
  network("FLOAT", "--scale", arguments->place.network.scale, "divide all bandwidths of the network by this");
  app->add_flag("--json", arguments->json, "print the score as one line of JSON")->group(kOutput);
  app->add_option("--out", arguments->out, "write the score to this file as JSON")
      ->group(kOutput)
      ->type_name("FILE");
  program.notes[app] = {
      "Without --data, a run's model is evaluated on the test data of the run; where those were held out of "
      "one "
      "file, on the same rows."};
  program.examples[app] = {"syncopate evaluate --model runs/my-run",
                           "syncopate evaluate --model ./my-bert --task rte --data glue/RTE/dev.tsv --json"};
  arguments->spec.note = [](const std::string& note) { tell("{}", note_line(note)); };
  return [arguments, app, argv] {
    if (arguments->place.network.name.empty()) {
      for (const char* flag : {"--hosts", "--scale"}) {
        if (app->get_option(flag)->count() > 0)
          throw ConfigError("{} has no effect without --network; give both or neither", flag);
      }
    }
    if (arguments->spec.stages > 1 && !arguments->place.network.name.empty())
      throw ConfigError("evaluate sits on one host of a network; leave --stages or --network out");
    if (run::needs_lab(arguments->place)) return run::run_in_network(arguments->place, 1, argv);
    return outcome(run::with_stages(arguments->spec.stages, argv, [&](comm::Group* stages) {
      if (stages != nullptr && stages->rank() > 0) arguments->spec.note = {};  // one of them says it
      complete(*app, arguments->spec, false);
      const record::EvalRecord score = run::score_model(arguments->spec, stages);
      if (stages != nullptr && stages->rank() > 0) return;
      nlohmann::ordered_json json = record::to_json(score);
      json.erase("step");
      if (!arguments->out.empty()) write_file_atomically(arguments->out, json.dump() + "\n");
      if (arguments->json) {
        fmt::print("{}\n", json.dump());
      } else {
        fmt::print("loss {:.4f}", score.loss);
        for (const auto& [name, value] : score.measures)
          fmt::print(" · {} {}", name, record::measure_for_people(name, value));
        fmt::print(" · {} examples in {:.1f} s\n", score.examples, score.seconds);
      }
    }));
  };
}

}  // namespace syncopate::cli
