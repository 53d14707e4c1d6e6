#include "syncopate/corpora/squad/squad_score.h"

#include <utf8proc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/text/python_text.h"

namespace syncopate::corpora {
namespace {

bool is_ascii_punctuation(int32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// How long the article is that stands as a word at `at`; 0 when there is none.
size_t article_at(const std::vector<int32_t>& text, size_t at) {
  if (at > 0 && text::python_is_word(text[at - 1])) return 0;
  for (const std::string_view article : {"a", "an", "the"}) {
    const size_t end = at + article.size();
    if (end > text.size() ||
        !std::equal(article.begin(), article.end(), text.begin() + static_cast<std::ptrdiff_t>(at)))
      continue;
    if (end == text.size() || !text::python_is_word(text[end])) return article.size();
  }
  return 0;
}

std::vector<std::string_view> words_of(const std::string& normalized) {
  if (normalized.empty()) return {};
  return split(normalized, ' ');
}

double f1_of(const std::string& prediction, const std::string& gold, bool may_be_empty) {
  std::vector<std::string_view> predicted = words_of(prediction), expected = words_of(gold);
  if (may_be_empty && (predicted.empty() || expected.empty())) return predicted == expected ? 1 : 0;
  std::sort(predicted.begin(), predicted.end());
  std::sort(expected.begin(), expected.end());
  std::vector<std::string_view> both;
  std::set_intersection(predicted.begin(), predicted.end(), expected.begin(), expected.end(),
                        std::back_inserter(both));
  if (both.empty()) return 0;
  const double precision = static_cast<double>(both.size()) / static_cast<double>(predicted.size());
  const double recall = static_cast<double>(both.size()) / static_cast<double>(expected.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

std::string normalized_answer(std::string_view text) {
  std::vector<int32_t> characters = text::python_lower(text::code_points_of(text));
  std::erase_if(characters, is_ascii_punctuation);
  std::string normal;
  bool blank = false;  // one is due before the next character, unless that is the first
  for (size_t i = 0; i < characters.size();) {
    if (const size_t length = article_at(characters, i); length > 0) {
      blank = true;
      i += length;
      continue;
    }
    if (text::python_is_space(characters[i])) {
      blank = true;
    } else {
      if (blank && !normal.empty()) normal += ' ';
      blank = false;
      utf8proc_uint8_t bytes[4];
      const auto count = utf8proc_encode_char(characters[i], bytes);
      normal.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
    }
    ++i;
  }
  return normal;
}

AnswerScore score_answer(std::string_view prediction, const std::vector<std::string>& gold,
                         bool may_be_empty) {
  const std::string predicted = normalized_answer(prediction);
  std::vector<std::string> expected;
  for (const std::string& answer : gold) {
    std::string normal = normalized_answer(answer);
    if (!may_be_empty || !normal.empty()) expected.push_back(std::move(normal));
  }
  if (may_be_empty && expected.empty()) expected.emplace_back();
  AnswerScore best;
  for (const std::string& answer : expected) {
    best.exact_match = std::max(best.exact_match, predicted == answer ? 1.0 : 0.0);
    best.f1 = std::max(best.f1, f1_of(predicted, answer, may_be_empty));
  }
  return best;
}

SquadScore score_predictions(const std::vector<Question>& questions,
                             const std::map<std::string, std::string>& predictions) {
  const bool may_be_empty = has_impossible(questions);
  SquadScore score;
  for (const Question& question : questions) {
    ++score.total;
    const auto found = predictions.find(question.id);
    if (found == predictions.end()) {
      ++score.missing;
      continue;
    }
    std::vector<std::string> gold;
    for (const Answer& answer : question.answers) gold.push_back(answer.text);
    const AnswerScore one = score_answer(found->second, gold, may_be_empty);
    score.exact_match += one.exact_match;
    score.f1 += one.f1;
  }
  if (score.total > 0) {
    score.exact_match *= 100.0 / static_cast<double>(score.total);
    score.f1 *= 100.0 / static_cast<double>(score.total);
  }
  return score;
}

std::map<std::string, std::string> read_predictions(const std::filesystem::path& path) {
  const auto file =
      nlohmann::json::parse(read_file(path, "predictions"), nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) {
    throw DataError("{} is not a JSON object of answers by question id; give a predictions.json",
                    path.string());
  }
  std::map<std::string, std::string> predictions;
  for (const auto& [id, text] : file.items()) {
    if (!text.is_string()) {
      throw DataError("{}: the answer to question \"{}\" is not text; give a predictions.json", path.string(),
                      id.substr(0, 60));
    }
    predictions.emplace(id, text.get<std::string>());
  }
  return predictions;
}

}  // namespace syncopate::corpora
