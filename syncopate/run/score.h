#pragma once

#include <functional>
#include <string>

#include "syncopate/comm/group.h"
#include "syncopate/record/record.h"
#include "syncopate/spec/score_spec.h"

namespace syncopate::run {

/// Scores a model folder: alone, or with a rank of `stages` for each of the spec's, the same on all of them.
/// Throws Error. Collective.
record::EvalRecord score_model(const spec::ScoreSpec& spec, comm::Group* stages = nullptr);

/// Hands the answers over as lines of JSON, one per example in the file's order; for questions one object
/// {id: answer}, as SQuAD's script reads it. With stages the last rank has them. Throws Error. Collective.
void predict(const spec::ScoreSpec& spec, const std::function<void(const std::string&)>& line,
             comm::Group* stages = nullptr);

}  // namespace syncopate::run
