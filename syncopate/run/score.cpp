#include "syncopate/run/score.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/spec/folder.h"
#include "syncopate/spec/tasks.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/train/evaluate.h"

namespace syncopate::run {
namespace {

struct Prepared {
  tasks::Scoring scoring;
  train::EvalOptions options;
};

Prepared prepare(spec::ScoreSpec spec, bool predict) {
  const spec::TaskFamily& family = spec::task_family(spec.task);
  if (spec.batch_size < 0) throw ConfigError("--batch-size must be 1 or more, got {}", spec.batch_size);
  if (!spec.prompts.empty() && !family.takes_prompts) {
    throw ConfigError(
        "--prompt is for texts (classes, mlm, clm); give the examples of {} in a file with --data",
        spec.task);
  }
  if (!spec.pairs.empty() && spec.prompts.empty()) {
    throw ConfigError("--prompt-pair goes with --prompt; give the first text of each pair with --prompt");
  }
  if (!spec.prompts.empty() && !spec.data.empty()) {
    throw ConfigError("--prompt and --data exclude each other; give one of them");
  }
  for (const auto& [name, value] : {std::pair{"--max-length", spec.max_length},
                                    {"--tokens", spec.continuation.tokens},
                                    {"--stride", spec.stride}}) {
    if (value < 0) throw ConfigError("{} must be 0 or more, got {}", name, value);
  }
  if (spec.best < 1) throw ConfigError("--best must be 1 or more, got {}", spec.best);
  if (spec.threads < 0) throw ConfigError("--threads must be 1 or more, got {}", spec.threads);
  const at::Device device = parse_device(spec.device);
  const PrecisionChoice precision = choose_precision(tensor::parse_precision(spec.precision), device);
  set_up_compute(spec.threads > 0 ? static_cast<int>(spec.threads) : default_threads(1));
  spec.model = tasks::model_folder_of(spec.model);
  if (!std::filesystem::is_directory(spec.model)) {
    throw DataError("there is no model folder {}; give the model/ folder of a run or a Hugging Face folder",
                    spec.model);
  }
  Prepared prepared{.scoring = tasks::family_of(spec.task).score(spec, predict),
                    .options = {.batch_size = spec.batch_size > 0 ? spec.batch_size : family.eval_batch,
                                .precision = precision.used}};
  move_model(*prepared.scoring.model, device);
  if (spec.note) {
    if (!precision.note.empty()) spec.note(precision.note);
    for (const std::string& note : prepared.scoring.notes) spec.note(note);
  }
  return prepared;
}

}  // namespace

record::EvalRecord score_model(const spec::ScoreSpec& spec) {
  const auto [scoring, options] = prepare(spec, false);
  const auto alone = comm::open_alone();
  const auto metric = scoring.metric();
  return train::evaluate(*scoring.model, *scoring.test, *alone, *metric, options);
}

void predict(const spec::ScoreSpec& spec, const std::function<void(const std::string&)>& line) {
  const Prepared prepared = prepare(spec, true);
  const tasks::Scoring& scoring = prepared.scoring;
  const at::NoGradGuard no_grad;
  scoring.model->set_mode({.training = false});
  const tensor::Autocast autocast(prepared.options.precision, parse_device(spec.device));
  scoring.answer(
      [&](const std::function<void(const at::Tensor&, const tensor::Batch&)>& use) {
        train::for_each_output(*scoring.model, *scoring.test, 0, scoring.test->size(), prepared.options, use);
      },
      line);
}

}  // namespace syncopate::run
