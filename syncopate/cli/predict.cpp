#include <fmt/format.h>

#include <memory>

#include "syncopate/base/file.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/model_use.h"

namespace syncopate::cli {

Command add_predict(Program& program, char** argv) {
  struct Arguments {
    spec::ScoreSpec spec;
    bool json = false;
    std::string out;
  };
  constexpr const char* kAnswers = "Answers";
  CLI::App* app =
      program.app.add_subcommand("predict", "Write a model's predictions for texts or a data file");
  auto arguments = std::make_shared<Arguments>();
  spec::ScoreSpec& spec = arguments->spec;
  add_model_options(program, *app, spec);
  const auto in = [](CLI::Option* option, const char* group, const char* type) {
    return option->group(group)->type_name(type);
  };
  in(app->add_option("--prompt", spec.prompts,
                     "a text to classify, to fill in (mlm) or to continue (clm), instead of --data; can be "
                     "repeated"),
     kModelAndData, "TEXT");
  in(app->add_option("--prompt-pair", spec.pairs,
                     "tasks of pairs: the second text of a --prompt, one for each in the same order"),
     kModelAndData, "TEXT");
  in(app->add_option("--best", spec.best, "mlm, images: number of predictions per example")
         ->capture_default_str(),
     kAnswers, "INT");
  app->add_flag("--may-be-empty", spec.may_be_empty,
                "squad: allow empty answers even if the file marks no question as impossible (v2.0)")
      ->group(kAnswers);
  spec::ContinueSpec& next = spec.continuation;
  in(app->add_option("--tokens", next.tokens, "clm: number of tokens to generate")->capture_default_str(),
     kAnswers, "INT");
  in(app->add_option("--temperature", next.temperature,
                     "clm: sampling temperature; 0: always the likeliest token")
         ->capture_default_str(),
     kAnswers, "FLOAT");
  in(app->add_option("--top-k", next.top_k, "clm: sample from the K likeliest tokens; 0: all")
         ->capture_default_str(),
     kAnswers, "INT");
  in(app->add_option("--top-p", next.top_p,
                     "clm: sample from the likeliest tokens with this total probability")
         ->capture_default_str(),
     kAnswers, "FLOAT");
  app->add_flag("--json", arguments->json,
                "write to standard output, with --out too (the default without --out)")
      ->group(kOutput);
  in(app->add_option("--out", arguments->out,
                     "write the predictions to this file (default: standard output)"),
     kOutput, "FILE");
  program.notes[app] = {
      "Writes one line of JSON per example, in the order of the file; the data need no labels.",
      "  texts: {\"index\", \"logits\", \"probabilities\", \"label\"}",
      "  images: {\"index\", \"label\", \"probability\", \"best\"}",
      "  mlm: {\"text\", \"masks\": [[{\"word\", \"probability\"}, ...], ...]} for each [MASK] of a line",
      "  clm: {\"text\", \"continuation\"} for each line",
      "  squad: one object {question id: answer}, as SQuAD's scorer reads it"};
  program.examples[app] = {
      "syncopate predict --model runs/my-run --prompt 'a fine film'",
      "syncopate predict --model runs/my-mlm --prompt 'The [MASK] sat on the mat.'",
      "syncopate predict --model ./my-bert --task sst2 --data dev.tsv --out answers.jsonl"};
  arguments->spec.note = [](const std::string& note) { tell("{}", note_line(note)); };
  return [arguments, app, argv] {
    return outcome(run::with_stages(arguments->spec.stages, argv, [&](comm::Group* stages) {
      if (stages != nullptr && stages->rank() > 0) arguments->spec.note = {};  // one of them says it
      complete(*app, arguments->spec, true);
      arguments->spec.continuation.seed = arguments->spec.seed;
      std::string lines;
      const auto take = [&](const std::string& line) {
        if (arguments->out.empty() || arguments->json) fmt::print("{}\n", line);
        if (!arguments->out.empty()) lines += line + "\n";
      };
      run::predict(arguments->spec, take, stages);
      const bool answers = stages == nullptr || stages->rank() + 1 == stages->size();
      if (answers && !arguments->out.empty()) write_file_atomically(arguments->out, lines);
    }));
  };
}

}  // namespace syncopate::cli
