#include "syncopate/run/score.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/together/machine.h"
#include "syncopate/nn/stage_model.h"
#include "syncopate/parallel/engines/pipeline_engine.h"
#include "syncopate/parallel/pipeline/cut.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/spec/folder.h"
#include "syncopate/spec/tasks.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/train/evaluate.h"

namespace syncopate::run {
namespace {

/// One stage of the model that is scored.
struct Stage {
  Stage(nn::Model& whole, comm::Group& stages)
      : model(whole, layers_of(whole, stages)), engine(stages, options_of(model)) {
    model.release_others();
  }

  /// As even as can be told without computing.
  static nn::LayerRange layers_of(const nn::Model& whole, const comm::Group& stages) {
    parallel::require_blocks(whole.blocks(), stages.size());
    const std::vector<double> alike(static_cast<size_t>(whole.depth()), 1.0);
    const auto blocks = parallel::balanced_cut(alike, stages.size());
    return parallel::layers_of_stages(whole, blocks)[static_cast<size_t>(stages.rank())];
  }
  static parallel::PipelineEngine::Options options_of(nn::StageModel& stage) {
    parallel::PipelineEngine::Options options;
    for (const auto& [name, table] : stage.first() ? stage.whole().tied() : stage.borrowed())
      options.tied.push_back(table);
    return options;
  }

  nn::StageModel model;
  parallel::PipelineEngine engine;
  std::unique_ptr<comm::Group> alone = comm::open_alone();  ///< nobody takes some of its batches
};

struct Prepared {
  tasks::Scoring scoring;
  train::EvalOptions options;
  std::unique_ptr<Stage> stage{};  ///< null: the model is whole
  nn::Model& model() const { return stage ? stage->model : *scoring.model; }
};

Prepared prepare(spec::ScoreSpec spec, bool predict, comm::Group* stages) {
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
  const tensor::Precision asked = tensor::parse_precision(spec.precision);
  set_up_compute(spec.threads > 0
                     ? static_cast<int>(spec.threads)
                     : default_threads(stages != nullptr ? comm::ranks_on_this_machine(*stages) : 1));
  spec.model = tasks::model_folder_of(spec.model);
  if (!std::filesystem::is_directory(spec.model)) {
    throw DataError("there is no model folder {}; give the model/ folder of a run or a Hugging Face folder",
                    spec.model);
  }
  Prepared prepared{.scoring = tasks::family_of(spec.task).score(spec, predict),
                    .options = {.batch_size = spec.batch_size > 0 ? spec.batch_size : family.eval_batch}};
  const PrecisionChoice precision = choose_precision(asked, device, *prepared.scoring.model);
  prepared.options.precision = precision.used;
  if (stages != nullptr) {
    if (!prepared.scoring.test)
      throw ConfigError("texts are continued by a whole model, not by stages; leave --stages out");
    prepared.stage = std::make_unique<Stage>(*prepared.scoring.model, *stages);
    prepared.options.engine = &prepared.stage->engine;
    prepared.options.sharers = prepared.stage->alone.get();
  }
  move_model(*prepared.scoring.model, device);
  if (spec.note) {
    if (!precision.note.empty()) spec.note(precision.note);
    for (const std::string& note : prepared.scoring.notes) spec.note(note);
  }
  return prepared;
}

}  // namespace

record::EvalRecord score_model(const spec::ScoreSpec& spec, comm::Group* stages) {
  const Prepared prepared = prepare(spec, false, stages);
  const auto alone = comm::open_alone();
  const auto metric = prepared.scoring.metric();
  return train::evaluate(prepared.model(), *prepared.scoring.test, stages != nullptr ? *stages : *alone,
                         *metric, prepared.options);
}

void predict(const spec::ScoreSpec& spec, const std::function<void(const std::string&)>& line,
             comm::Group* stages) {
  const Prepared prepared = prepare(spec, true, stages);
  const tasks::Scoring& scoring = prepared.scoring;
  const at::NoGradGuard no_grad;
  prepared.model().set_mode({.training = false});
  const tensor::Autocast autocast(prepared.options.precision, parse_device(spec.device));
  const auto for_each = [&](const std::function<void(const at::Tensor&, const tensor::Batch&)>& use) {
    train::for_each_output(prepared.model(), *scoring.test, 0, scoring.test->size(), prepared.options, use);
  };
  const bool answers = stages == nullptr || stages->rank() + 1 == stages->size();
  if (answers) {
    scoring.answer(for_each, line);
  } else {
    for_each({});
  }
}

}  // namespace syncopate::run
