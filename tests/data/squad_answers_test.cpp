#include "syncopate/data/squad_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/fixtures.h"

namespace syncopate::data {
namespace {

/// Two windows of "Aa bb. cc dd": [CLS] q [SEP] Aa bb . [SEP] and [CLS] q [SEP] . cc dd [SEP].
class Answers : public testing::Test {
 protected:
  Answers()
      : tokenizer_(test::vocabulary_of({"aa", "bb", "cc", "dd", ".", "q"}), text::rules_for(true)),
        dataset_(std::vector<corpora::Question>{{"one", "q", 0}, {"two", "q", 1}},
                 std::vector<std::string>{"Aa bb. cc dd", "dd"}, tokenizer_,
                 {.max_length = 7, .stride = 1, .max_question = 1}) {}

  /// Logits of the seven positions, `peaks` ones of them higher.
  static std::vector<float> logits(const std::vector<std::pair<size_t, float>>& peaks) {
    std::vector<float> values(7, 0.0F);
    for (const auto& [position, value] : peaks) values[position] = value;
    return values;
  }

  text::WordPiece tokenizer_;
  SquadDataset dataset_;
};

TEST_F(Answers, SpansAreInTheWindowInOrderAndNotTooLong) {
  ASSERT_EQ(dataset_.size(), 3);
  // The question and the special words are likeliest, but no answers.
  const FeatureAnswers found = best_spans(dataset_, 0, logits({{0, 9}, {1, 9}, {4, 2}, {6, 9}}),
                                          logits({{0, 8}, {3, 3}, {4, 1}, {6, 9}}));
  EXPECT_EQ(found.feature, 0);
  EXPECT_EQ(found.null_score, 17);
  ASSERT_EQ(found.candidates.size(), 6U);
  EXPECT_EQ(found.candidates[0], (Candidate{3, 3, 3}));
  EXPECT_EQ(found.candidates[1], (Candidate{4, 4, 3})) << "of equal scores the earlier first";
  for (const Candidate& candidate : found.candidates) EXPECT_LE(candidate.start, candidate.end);
  const FeatureAnswers shorter = best_spans(dataset_, 0, logits({}), logits({}), {.max_pieces = 1});
  EXPECT_EQ(shorter.candidates, (std::vector<Candidate>{{3, 3, 0}, {4, 4, 0}, {5, 5, 0}}));
  EXPECT_EQ(best_spans(dataset_, 0, logits({{4, 1}}), logits({{4, 1}}), {.n_best = 1}).candidates,
            (std::vector<Candidate>{{4, 4, 2}}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Candidate& candidate :
       best_spans(dataset_, 0, logits({{3, nan}}), logits({{4, nan}})).candidates) {
    EXPECT_NE(candidate.start, 3);
    EXPECT_NE(candidate.end, 4);
  }
  EXPECT_THROW(best_spans(dataset_, 0, std::vector<float>(6), logits({})), InternalError);
}

TEST_F(Answers, BestAnswerOfAllWindowsIsTextOfTheContext) {
  std::vector<FeatureAnswers> all{best_spans(dataset_, 0, logits({{3, 5}}), logits({{4, 5}})),
                                  best_spans(dataset_, 1, logits({{4, 6}}), logits({{5, 5}})),
                                  best_spans(dataset_, 2, logits({}), logits({}))};
  EXPECT_EQ(final_answers(dataset_, all), (std::vector<std::string>{"cc dd", "dd"}));
  std::swap(all[0], all[2]);
  EXPECT_EQ(final_answers(dataset_, all)[0], "cc dd") << "features may come in any order";
  all.erase(all.begin() + 1);
  EXPECT_EQ(final_answers(dataset_, all)[0], "Aa bb") << "with its capital and its blank";
  const auto ranked = ranked_answers(dataset_, all);
  double sum = 0;
  for (const RankedAnswer& answer : ranked[0]) {
    sum += answer.probability;
    EXPECT_EQ(std::count_if(ranked[0].begin(), ranked[0].end(),
                            [&](const RankedAnswer& other) { return other.text == answer.text; }),
              1);
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_NEAR(ranked[0][1].probability / ranked[0][0].probability, std::exp(-5), 1e-9);
  EXPECT_EQ(final_answers(dataset_, {}), (std::vector<std::string>{"", ""}));
}

TEST_F(Answers, OnlyVersionTwoAllowsEmptyAnswers) {
  // The null score of a question is the least of its windows': 8 here, 2 less than the best span.
  const std::vector<FeatureAnswers> all{best_spans(dataset_, 0, logits({{0, 20}, {3, 5}}), logits({{4, 5}})),
                                        best_spans(dataset_, 1, logits({{0, 4}}), logits({{0, 4}})),
                                        best_spans(dataset_, 2, logits({{0, 1}}), logits({}))};
  EXPECT_EQ(final_answers(dataset_, all), (std::vector<std::string>{"Aa bb", "dd"}))
      << "v1.1 never answers nothing";
  EXPECT_EQ(final_answers(dataset_, all, {.may_be_empty = true}), (std::vector<std::string>{"Aa bb", ""}));
  EXPECT_EQ(final_answers(dataset_, all, {.may_be_empty = true, .empty_threshold = -3}),
            (std::vector<std::string>{"", ""}));
  EXPECT_EQ(final_answers(dataset_, all, {.may_be_empty = true, .empty_threshold = 1}),
            (std::vector<std::string>{"Aa bb", "dd"}))
      << "1 is not more than 1";
  const auto ranked = ranked_answers(dataset_, all, {.may_be_empty = true});
  EXPECT_EQ(ranked[0][1].text, "");
  EXPECT_EQ(ranked[0][1].score, 8);
  EXPECT_EQ(ranked[1].size(), 2U);
}

}  // namespace
}  // namespace syncopate::data
