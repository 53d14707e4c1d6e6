#include <fmt/format.h>

#include <memory>

#include "syncopate/base/file.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/model_use.h"

namespace syncopate::cli {

Command add_predict(CLI::App& program) {
  struct Arguments {
    spec::ScoreSpec spec;
    bool json = false;
    std::string out;
  };
  CLI::App* app = program.add_subcommand("predict", "Write a model's predictions for a data file");
  auto arguments = std::make_shared<Arguments>();
  spec::ScoreSpec& spec = arguments->spec;
  add_model_options(*app, spec);
  app->add_option("--prompt", spec.prompts,
                  "mlm, clm: a text to fill in or continue, instead of --data; can be repeated");
  app->add_option("--best", spec.best, "mlm, images: number of predictions per example")
      ->capture_default_str();
  app->add_flag("--may-be-empty", spec.may_be_empty,
                "squad: allow empty answers even if the file marks no question as impossible (v2.0)");
  spec::ContinueSpec& next = spec.continuation;
  app->add_option("--tokens", next.tokens, "clm: number of tokens to generate")->capture_default_str();
  app->add_option("--temperature", next.temperature,
                  "clm: sampling temperature; 0: always the likeliest token")
      ->capture_default_str();
  app->add_option("--top-k", next.top_k, "clm: sample from the K likeliest tokens; 0: all")
      ->capture_default_str();
  app->add_option("--top-p", next.top_p, "clm: sample from the likeliest tokens with this total probability")
      ->capture_default_str();
  app->add_flag("--json", arguments->json, "write to standard output (the default without --out)");
  app->add_option("--out", arguments->out, "write the predictions to this file (default: standard output)");
  app->footer(
      "Writes one line of JSON per example, in the order of the file (the data need no labels):\n"
      "  texts     {\"index\", \"logits\", \"label\"}\n"
      "  images    {\"index\", \"label\", \"probability\", \"best\"}\n"
      "  mlm       {\"text\", \"masks\": [[{\"word\", \"probability\"}, ...], ...]} for each [MASK] of a "
      "line\n"
      "  clm       {\"text\", \"continuation\"} for each line\n"
      "  squad     one object {question id: answer}, as SQuAD's scorer reads it\n"
      "Examples:\n"
      "  syncopate predict --task sst2 --data dev.tsv --model runs/my-run/model --out answers.jsonl\n"
      "  syncopate predict --task mlm --model runs/my-mlm --prompt 'The [MASK] sat on the mat.'\n"
      "  syncopate predict --task clm --model runs/my-gpt --prompt 'Once' --top-k 40 --temperature 0.8");
  arguments->spec.note = [](const std::string& note) { fmt::print(stderr, "note: {}\n", note); };
  return [arguments] {
    arguments->spec.continuation.seed = arguments->spec.seed;
    std::string lines;
    run::predict(arguments->spec, [&](const std::string& line) {
      if (arguments->out.empty()) {
        fmt::print("{}\n", line);
      } else {
        lines += line + "\n";
      }
    });
    if (!arguments->out.empty()) write_file_atomically(arguments->out, lines);
    return 0;
  };
}

}  // namespace syncopate::cli
