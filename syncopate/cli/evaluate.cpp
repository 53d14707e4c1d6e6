#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/score.h"
#include "syncopate/run/score.h"

namespace syncopate::cli {

void add_score_options(CLI::App& app, ScoreArguments& arguments) {
  app.add_option("--task", arguments.task, "the task that the model was trained on")->required();
  app.add_option("--data", arguments.data, "data file, or folder; empty: the built-in data of the task");
  app.add_option("--model", arguments.model, "model folder: a run's model/, or any Hugging Face folder")
      ->required();
  app.add_option("--max-length", arguments.max_length,
                 "tokens of an example; default: as the model was trained");
  app.add_option("--batch-size", arguments.batch_size, "examples at once")->capture_default_str();
  app.add_option("--threads", arguments.threads, "default: all cores");
}

Command add_evaluate(CLI::App& program) {
  struct Arguments : ScoreArguments {
    bool json = false;
    std::string out;
  };
  CLI::App* app = program.add_subcommand("evaluate", "Score a model folder on a data file");
  auto arguments = std::make_shared<Arguments>();
  add_score_options(*app, *arguments);
  app->add_flag("--json", arguments->json, "print the score as one line of JSON");
  app->add_option("--out", arguments->out, "write the score to this file as JSON");
  app->footer("Example:\n  syncopate evaluate --task rte --data glue/RTE/dev.tsv --model runs/my-run/model");
  return [arguments] {
    const record::EvalRecord score = run::score_model({.task = arguments->task,
                                                       .data = arguments->data,
                                                       .model = arguments->model,
                                                       .max_length = arguments->max_length,
                                                       .batch_size = arguments->batch_size,
                                                       .threads = arguments->threads});
    nlohmann::ordered_json json = record::to_json(score);
    json.erase("step");
    if (!arguments->out.empty()) write_file_atomically(arguments->out, json.dump() + "\n");
    if (arguments->json) {
      fmt::print("{}\n", json.dump());
    } else {
      fmt::print("loss {:.4f}", score.loss);
      for (const auto& [name, value] : score.measures) fmt::print(" · {} {:.2f} %", name, 100 * value);
      fmt::print(" · {} examples in {:.1f} s\n", score.examples, score.seconds);
    }
    return 0;
  };
}

}  // namespace syncopate::cli
