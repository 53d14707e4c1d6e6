#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "syncopate/data/squad_dataset.h"

namespace syncopate::data {

struct AnswerOptions {
  int64_t n_best = 20;         ///< spans kept of a feature, and answers of a question
  int64_t max_pieces = 30;     ///< of an answer
  bool may_be_empty = false;   ///< v2.0: a question may have no answer
  double empty_threshold = 0;  ///< the answer is empty when [CLS] beats the best span by more than this
};

/// A span of a feature, from position `start` to position `end`, that one included.
struct Candidate {
  int32_t start = 0;
  int32_t end = 0;
  float score = 0;  ///< the sum of the two logits
  bool operator==(const Candidate&) const = default;
};

/// What one feature has to say: small enough to be sent from rank to rank.
struct FeatureAnswers {
  int64_t feature = 0;
  double null_score = 0;                ///< of [CLS], for "no answer"
  std::vector<Candidate> candidates{};  ///< best first
};

/// The best spans of a feature: among its n_best likeliest starts and ends within the window, those in order
/// and not too long. The logits may go on behind the feature's length (padding). Equal scores: the earlier
/// start, then the earlier end, comes first. A logit that is not a number is never chosen.
FeatureAnswers best_spans(const SquadDataset& dataset, int64_t feature, std::span<const float> start_logits,
                          std::span<const float> end_logits, const AnswerOptions& options = {});

/// An answer as the context writes it; empty for "no answer".
struct RankedAnswer {
  std::string text;
  double score = 0;
  double probability = 0;  ///< among the answers of its question
};

/// By question, the n_best different answers of all its features, best first; of one text the best span
/// counts. Where answers may be empty, "" is one of them (its score the least null score of the features),
/// first when the threshold says so. The features may come in any order, from any rank. A question without
/// any span has the one answer "".
std::vector<std::vector<RankedAnswer>> ranked_answers(const SquadDataset& dataset,
                                                      std::span<const FeatureAnswers> features,
                                                      const AnswerOptions& options = {});

/// The first of the ranked answers, by question.
std::vector<std::string> final_answers(const SquadDataset& dataset, std::span<const FeatureAnswers> features,
                                       const AnswerOptions& options = {});

}  // namespace syncopate::data
