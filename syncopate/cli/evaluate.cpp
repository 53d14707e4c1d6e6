#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/file.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/model_use.h"

namespace syncopate::cli {

void add_model_options(CLI::App& app, spec::ScoreSpec& spec) {
  app.add_option("--task", spec.task, "the task that the model was trained on")->required();
  app.add_option("--data", spec.data, "data file or folder (default: the task's built-in data)");
  app.add_option("--model", spec.model, "a run's folder, its model/ folder, or a Hugging Face model folder")
      ->required();
  app.add_option("--text", spec.columns.text, "csv: the column with the text");
  app.add_option("--text-pair", spec.columns.text_pair,
                 "csv: the column with a second text, if there is one");
  app.add_option("--label", spec.columns.label, "csv: the column with the label");
  app.add_option("--max-length", spec.max_length, "maximum tokens per example (default: as in training)");
  app.add_option("--stride", spec.stride, "squad: tokens by which the windows of a long text overlap")
      ->capture_default_str();
  app.add_option("--batch-size", spec.batch_size, "examples per batch (default: depends on the task)");
  app.add_option("--threads", spec.threads, "number of threads (default: all cores)");
  app.add_option("--device", spec.device, "cpu, cuda or cuda:1")->capture_default_str();
  app.add_option("--precision", spec.precision, "fp32, bf16 or fp16")->capture_default_str();
  app.add_option("--seed", spec.seed, "seed of the masks (mlm) or of sampling (clm)")->capture_default_str();
}

Command add_evaluate(CLI::App& program) {
  struct Arguments {
    spec::ScoreSpec spec;
    bool json = false;
    std::string out;
  };
  CLI::App* app = program.add_subcommand("evaluate", "Evaluate a model on a data file");
  auto arguments = std::make_shared<Arguments>();
  add_model_options(*app, arguments->spec);
  app->add_flag("--json", arguments->json, "print the score as one line of JSON");
  app->add_option("--out", arguments->out, "write the score to this file as JSON");
  app->add_option("--documents", arguments->spec.documents,
                  "mlm, clm: how documents are separated: line (one per line), blank (blank lines) or auto")
      ->capture_default_str();
  app->add_option("--mask-rate", arguments->spec.mask_rate, "mlm: fraction of the words to predict")
      ->capture_default_str();
  app->add_flag("--whole-words", arguments->spec.whole_words, "mlm: mask all pieces of a word together");
  app->footer("Example:\n  syncopate evaluate --task rte --data glue/RTE/dev.tsv --model runs/my-run/model");
  arguments->spec.note = [](const std::string& note) { fmt::print(stderr, "note: {}\n", note); };
  return [arguments] {
    const record::EvalRecord score = run::score_model(arguments->spec);
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
    return 0;
  };
}

}  // namespace syncopate::cli
