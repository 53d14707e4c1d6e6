#include "syncopate/corpora/squad/squad_score.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::read_text;
using syncopate::test::TempDir;
using syncopate::test::write_text;
using test::sentence;

TEST(SquadScore, NormalizesLikePython) {
  EXPECT_EQ(normalized_answer("The  Cat, an\tanimal!"), "cat animal");
  EXPECT_EQ(normalized_answer("A.B."), "ab") << "punctuation goes first, so no article is left";
  EXPECT_EQ(normalized_answer("theatre Athena banana"), "theatre athena banana");
  EXPECT_EQ(normalized_answer("“The End”"), "“ end”")
      << "only ASCII punctuation is dropped, but it ends a word";
  EXPECT_EQ(normalized_answer("a\u00A0b\u3000c\u2003"), "b c");
  EXPECT_EQ(normalized_answer("a\u200Bb"), "\u200Bb") << "no white space to Python, and no letter";
  EXPECT_EQ(normalized_answer("ÉCOLE İ ΟΔΟΣ ΣΑΣ. Σ"), "école i\u0307 οδος σας σ");
  EXPECT_EQ(normalized_answer("a\u0301 the\u0301"), "\u0301 \u0301")
      << "a mark is no letter to the module re";
  EXPECT_EQ(normalized_answer("an² a_b"), "an² ab");
  EXPECT_EQ(normalized_answer("the a an"), "");
  EXPECT_EQ(normalized_answer("x\xFFy"), "xy");
}

TEST(SquadScore, TakesTheBestOverTheGoldAnswers) {
  const AnswerScore score = score_answer("the red house", {"red barn", "house", "a big red house"}, false);
  EXPECT_EQ(score.exact_match, 0);
  EXPECT_NEAR(score.f1, 0.8, 1e-12);
  EXPECT_EQ(score_answer("The House!", {"barn", "house"}, false).exact_match, 1);
  EXPECT_NEAR(score_answer("x x y", {"x y y"}, false).f1, 2.0 / 3, 1e-12)
      << "words count as often as they occur";
  EXPECT_EQ(score_answer("", {}, false).exact_match, 0);
}

TEST(SquadScore, ScoresEmptyAnswersForBothVersions) {
  EXPECT_EQ(score_answer("", {}, true).f1, 1);
  EXPECT_EQ(score_answer("the", {""}, true).exact_match, 1);
  EXPECT_EQ(score_answer("x", {}, true).f1, 0);
  EXPECT_EQ(score_answer("", {"the", "x"}, true).exact_match, 0)
      << "an answer that normalizes to nothing does not count";
  EXPECT_EQ(score_answer("", {"the"}, false).exact_match, 1);
  EXPECT_EQ(score_answer("", {"the"}, false).f1, 0) << "v1.1: no word in common";
}

TEST(SquadScore, UnansweredQuestionsCountAsWrong) {
  const std::vector<Question> questions{
      {"a", "?", 0, {{"red house", 0}}}, {"b", "?", 0, {{"x", 0}}}, {"c", "?", 0, {{"y", 0}}}};
  const SquadScore score =
      score_predictions(questions, {{"a", "house"}, {"b", "x"}, {"z", "no such question"}});
  EXPECT_EQ(score.total, 3);
  EXPECT_EQ(score.missing, 1);
  EXPECT_NEAR(score.exact_match, 100.0 / 3, 1e-9);
  EXPECT_NEAR(score.f1, 100 * (2.0 / 3 + 1) / 3, 1e-9);
}

TEST(SquadScore, ReadsPredictions) {
  const TempDir folder;
  write_text(folder / "p.json", R"({"a": "x", "b": ""})");
  EXPECT_EQ(read_predictions(folder / "p.json"), (std::map<std::string, std::string>{{"a", "x"}, {"b", ""}}));
  write_text(folder / "p.json", R"({"a": 1})");
  EXPECT_NE(sentence<DataError>([&] {
              read_predictions(folder / "p.json");
            }).find("the answer to question \"a\" is not text"),
            std::string::npos);
  write_text(folder / "p.json", "[]");
  EXPECT_NE(sentence<DataError>([&] {
              read_predictions(folder / "p.json");
            }).find("is not a JSON object of answers by question id"),
            std::string::npos);
}

TEST(SquadOracle, MatchesAThousandOfficialScores) {
  SYNCOPATE_NEED_SHARED(oracle, "oracles/squad/scoring.json");
  const auto expected = nlohmann::json::parse(read_text(oracle));
  std::vector<Question> questions;
  std::map<std::string, std::string> predictions;
  int raw_equal = 0;
  for (const auto& one : expected["cases"]) {
    const auto gold = one["gold"].get<std::vector<std::string>>();
    const auto prediction = one["prediction"].get<std::string>();
    const AnswerScore score = score_answer(prediction, gold, false);
    ASSERT_NEAR(score.exact_match, one["exact"].get<double>(), 1e-9) << one;
    ASSERT_NEAR(score.f1, one["f1"].get<double>(), 1e-9) << one;
    raw_equal +=
        (std::find(gold.begin(), gold.end(), prediction) != gold.end()) == (one["exact"].get<double>() == 1);
    Question question{"case " + std::to_string(questions.size()), "?", 0, {}, false};
    for (const std::string& text : gold) question.answers.push_back({text, 0});
    predictions[question.id] = prediction;
    questions.push_back(std::move(question));
  }
  EXPECT_EQ(questions.size(), 1000U);
  EXPECT_LT(raw_equal, 1000) << "without normalizing, scores would differ";
  const SquadScore score = score_predictions(questions, predictions);
  EXPECT_NEAR(score.exact_match, expected["exact"].get<double>(), 1e-9);
  EXPECT_NEAR(score.f1, expected["f1"].get<double>(), 1e-9);
}

}  // namespace
}  // namespace syncopate::corpora
