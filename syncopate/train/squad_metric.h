#pragma once

#include <memory>
#include <vector>

#include "syncopate/corpora/squad/squad.h"
#include "syncopate/data/squad_answers.h"
#include "syncopate/data/squad_dataset.h"
#include "syncopate/train/metric.h"

namespace syncopate::train {

/// Adds a batch's best spans to `into`. `output` [B, L, 2]: logits of starts and ends.
void collect_spans(const data::SquadDataset& dataset, const at::Tensor& output, const tensor::Batch& batch,
                   const data::AnswerOptions& options, std::vector<data::FeatureAnswers>& into);

/// SQuAD's exact match and F1, in per cent. Ranks evaluate windows; a question's windows may lie on two
/// ranks, so their best spans are brought together before answers are chosen. `questions` are those of
/// `dataset`, in its order.
MakeMetric squad(std::shared_ptr<const data::SquadDataset> dataset, std::vector<corpora::Question> questions);

}  // namespace syncopate::train
