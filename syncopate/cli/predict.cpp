#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/file.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/score.h"
#include "syncopate/run/score.h"

namespace syncopate::cli {

Command add_predict(CLI::App& program) {
  struct Arguments : ScoreArguments {
    bool json = false;
    std::string out;
  };
  CLI::App* app = program.add_subcommand("predict", "Write a model's answer for each example of a data file");
  auto arguments = std::make_shared<Arguments>();
  add_score_options(*app, *arguments);
  app->add_flag("--json", arguments->json, "print the lines to standard output (as without --out)");
  app->add_option("--out", arguments->out, "write the lines to this file; default: standard output");
  app->footer(
      "One JSON line per example, in the file's order: {\"index\", \"logits\", \"label\"}. The data need no "
      "labels.\n"
      "Example:\n  syncopate predict --task sst2 --data dev.tsv --model runs/my-run/model --out "
      "answers.jsonl");
  return [arguments] {
    std::string lines;
    run::predict({.task = arguments->task,
                  .data = arguments->data,
                  .model = arguments->model,
                  .max_length = arguments->max_length,
                  .batch_size = arguments->batch_size,
                  .threads = arguments->threads},
                 [&](const run::Prediction& prediction) {
                   const nlohmann::ordered_json json{{"index", prediction.index},
                                                     {"logits", prediction.logits},
                                                     {"label", prediction.label}};
                   if (arguments->out.empty()) {
                     fmt::print("{}\n", json.dump());
                   } else {
                     lines += json.dump() + "\n";
                   }
                 });
    if (!arguments->out.empty()) write_file_atomically(arguments->out, lines);
    return 0;
  };
}

}  // namespace syncopate::cli
