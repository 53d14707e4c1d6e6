#include "syncopate/run/score.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/run/build.h"
#include "syncopate/run/compute.h"
#include "syncopate/train/evaluate.h"

namespace syncopate::run {
namespace {

Scoring prepare(const ScoreSpec& spec, data::Purpose purpose) {
  if (spec.batch_size < 1) throw ConfigError("--batch-size must be 1 or more, got {}", spec.batch_size);
  if (spec.threads < 0) throw ConfigError("--threads must be 1 or more, got {}", spec.threads);
  set_up_compute(spec.threads > 0 ? static_cast<int>(spec.threads) : default_threads(1));
  return make_scoring(spec.task, spec.data, spec.model, spec.max_length, purpose);
}

}  // namespace

record::EvalRecord score_model(const ScoreSpec& spec) {
  const Scoring scoring = prepare(spec, data::Purpose::kEvaluate);
  const auto alone = comm::open_alone();
  return train::evaluate(*scoring.model, *scoring.test, *alone, spec.batch_size);
}

void predict(const ScoreSpec& spec, const std::function<void(const Prediction&)>& use) {
  const Scoring scoring = prepare(spec, data::Purpose::kPredict);
  train::for_each_output(*scoring.model, *scoring.test, 0, scoring.test->size(), spec.batch_size,
                         [&](const at::Tensor& output, const tensor::Batch& batch) {
                           const at::Tensor logits = output.to(at::kFloat).contiguous();
                           const int64_t width = logits.size(1);
                           for (int64_t row = 0; row < logits.size(0); ++row) {
                             const float* const first = logits.data_ptr<float>() + row * width;
                             Prediction prediction;
                             prediction.index = batch.ids[static_cast<size_t>(row)];
                             prediction.logits.assign(first, first + width);
                             const int64_t best = logits[row].argmax().item<int64_t>();
                             prediction.label = scoring.labels[static_cast<size_t>(best)];
                             use(prediction);
                           }
                         });
}

}  // namespace syncopate::run
