#include "syncopate/data/squad_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "syncopate/base/error.h"

namespace syncopate::data {
namespace {

/// The positions first..behind-1 with the `count` largest logits.
std::vector<int32_t> likeliest(std::span<const float> logits, int64_t first, int64_t behind, int64_t count) {
  std::vector<int32_t> order;
  for (int64_t i = first; i < behind; ++i) {
    if (!std::isnan(logits[static_cast<size_t>(i)])) order.push_back(static_cast<int32_t>(i));
  }
  const auto kept = std::min<int64_t>(count, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)], right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  order.resize(static_cast<size_t>(kept));
  return order;
}

void set_probabilities(std::vector<RankedAnswer>& answers) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const RankedAnswer& answer : answers) largest = std::max(largest, answer.score);
  for (RankedAnswer& answer : answers) {
    // Infinite scores have no differences: such answers share alike.
    answer.probability = answer.score == largest ? 1.0 : std::exp(answer.score - largest);
    sum += answer.probability;
  }
  for (RankedAnswer& answer : answers) answer.probability /= sum;
}

}  // namespace

FeatureAnswers best_spans(const SquadDataset& dataset, int64_t feature, std::span<const float> start_logits,
                          std::span<const float> end_logits, const AnswerOptions& options) {
  const int64_t length = dataset.length(feature);
  check(static_cast<int64_t>(start_logits.size()) >= length &&
            static_cast<int64_t>(end_logits.size()) >= length,
        "every position of a feature has its logits");
  const auto [first, behind] = dataset.window(feature);
  FeatureAnswers answers{
      .feature = feature,
      .null_score = static_cast<double>(start_logits[0]) + static_cast<double>(end_logits[0])};
  const auto ends = likeliest(end_logits, first, behind, options.n_best);
  for (const int32_t start : likeliest(start_logits, first, behind, options.n_best)) {
    for (const int32_t end : ends) {
      if (end < start || end - start + 1 > options.max_pieces) continue;
      const float score = start_logits[static_cast<size_t>(start)] + end_logits[static_cast<size_t>(end)];
      if (!std::isnan(score)) answers.candidates.push_back({start, end, score});
    }
  }
  auto& candidates = answers.candidates;
  const auto kept = std::min<int64_t>(options.n_best, static_cast<int64_t>(candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return std::tuple(-a.score, a.start, a.end) < std::tuple(-b.score, b.start, b.end);
                    });
  candidates.resize(static_cast<size_t>(kept));
  return answers;
}

std::vector<std::vector<RankedAnswer>> ranked_answers(const SquadDataset& dataset,
                                                      std::span<const FeatureAnswers> features,
                                                      const AnswerOptions& options) {
  struct Span {
    double score;
    int64_t feature;
    Candidate candidate;
  };
  const auto count = static_cast<size_t>(dataset.questions());
  std::vector<std::vector<Span>> spans(count);
  std::vector<double> null_scores(count, std::numeric_limits<double>::infinity());
  for (const FeatureAnswers& answers : features) {
    const auto question = static_cast<size_t>(dataset.question_of(answers.feature));
    null_scores[question] = std::min(null_scores[question], answers.null_score);
    for (const Candidate& candidate : answers.candidates) {
      spans[question].push_back({static_cast<double>(candidate.score), answers.feature, candidate});
    }
  }
  std::vector<std::vector<RankedAnswer>> ranked(count);
  for (size_t question = 0; question < count; ++question) {
    std::sort(spans[question].begin(), spans[question].end(), [](const Span& a, const Span& b) {
      return std::tuple(-a.score, a.feature, a.candidate.start, a.candidate.end) <
             std::tuple(-b.score, b.feature, b.candidate.start, b.candidate.end);
    });
    auto& answers = ranked[question];
    for (const Span& span : spans[question]) {
      if (static_cast<int64_t>(answers.size()) >= options.n_best) break;
      const int64_t begin = dataset.place(span.feature, span.candidate.start).begin;
      const int64_t end = dataset.place(span.feature, span.candidate.end).end;
      std::string text(dataset.context_of(span.feature)
                           .substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
      const auto same = [&](const RankedAnswer& answer) { return answer.text == text; };
      if (std::none_of(answers.begin(), answers.end(), same))
        answers.push_back({std::move(text), span.score, 0});
    }
    if (answers.empty()) {
      answers.push_back({"", null_scores[question], 0});
    } else if (options.may_be_empty) {
      const double null = null_scores[question];
      const bool wins = null - answers.front().score > options.empty_threshold;
      const auto place = std::find_if(answers.begin() + 1, answers.end(),
                                      [&](const RankedAnswer& answer) { return answer.score < null; });
      answers.insert(wins ? answers.begin() : place, RankedAnswer{"", null, 0});
      if (static_cast<int64_t>(answers.size()) > std::max<int64_t>(options.n_best, 2)) answers.pop_back();
    }
    set_probabilities(answers);
  }
  return ranked;
}

std::vector<std::string> final_answers(const SquadDataset& dataset, std::span<const FeatureAnswers> features,
                                       const AnswerOptions& options) {
  std::vector<std::string> texts;
  for (auto& answers : ranked_answers(dataset, features, options))
    texts.push_back(std::move(answers.front().text));
  return texts;
}

}  // namespace syncopate::data
