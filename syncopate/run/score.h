#pragma once

#include <functional>
#include <string>

#include "syncopate/record/record.h"
#include "syncopate/spec/score_spec.h"

namespace syncopate::run {

/// Scores a model folder. Throws Error.
record::EvalRecord score_model(const spec::ScoreSpec& spec);

/// Hands the answers over as lines of JSON, one per example in the file's order; for questions one object
/// {id: answer}, as SQuAD's script reads it.
void predict(const spec::ScoreSpec& spec, const std::function<void(const std::string&)>& line);

}  // namespace syncopate::run
