#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/record/record.h"

namespace syncopate::run {

struct ScoreSpec {
  std::string task, data, model;
  int64_t max_length = 0;  ///< 0: what the model was trained with
  int64_t batch_size = 64;
  int64_t threads = 0;  ///< 0: all cores
};

struct Prediction {
  int64_t index = 0;  ///< of the example in its file, from 0
  std::vector<float> logits;
  std::string label;  ///< the name of the largest
};

/// Scores a model folder. Throws Error.
record::EvalRecord score_model(const ScoreSpec& spec);

/// Hands each example's prediction over, in the file's order.
void predict(const ScoreSpec& spec, const std::function<void(const Prediction&)>& use);

}  // namespace syncopate::run
