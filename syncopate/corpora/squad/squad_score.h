#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/squad/squad.h"

namespace syncopate::corpora {

/// How well one prediction meets its gold answers: 0 to 1 each.
struct AnswerScore {
  double exact_match = 0;
  double f1 = 0;
};

/// What the official script compares: lower case, without ASCII punctuation and the words a, an, the, white
/// space made single blanks; with Python's idea of case, white space and where a word ends.
std::string normalized_answer(std::string_view text);

/// The best over the gold answers, each measure by itself. `may_be_empty`: v2.0's rules, by which no gold
/// answer, or one that is empty when normalized, is met by an empty prediction alone.
AnswerScore score_answer(std::string_view prediction, const std::vector<std::string>& gold,
                         bool may_be_empty);

struct SquadScore {
  double exact_match = 0;  ///< per cent
  double f1 = 0;           ///< per cent
  int64_t total = 0;
  int64_t missing = 0;  ///< questions without a prediction; they count as wrong
};

/// Scores predictions by id, by v2.0's rules when a question is impossible, else by v1.1's.
SquadScore score_predictions(const std::vector<Question>& questions,
                             const std::map<std::string, std::string>& predictions);

/// A predictions.json, {"id": "text", ...}, as the official script reads it. Throws DataError.
std::map<std::string, std::string> read_predictions(const std::filesystem::path& path);

}  // namespace syncopate::corpora
