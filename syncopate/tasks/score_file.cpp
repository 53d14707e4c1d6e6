#include "syncopate/tasks/score_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/squad/squad_score.h"
#include "syncopate/corpora/task.h"
#include "syncopate/record/lines.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {
namespace {

using Measures = std::map<std::string, double>;

/// The truth of a task with labels.
struct Labelled {
  std::vector<std::string> names;
  std::vector<int64_t> labels;  ///< by example; -1: not known, and not scored
};

constexpr int64_t kNone = -1;   // no prediction
constexpr int64_t kOther = -2;  // a label that the data do not have

/// The number of each example's predicted label, kNone or kOther; `others` are the labels that the data lack.
std::vector<int64_t> read_labels(const std::string& path, const Labelled& truth,
                                 std::set<std::string>& others) {
  std::vector<int64_t> answers(truth.labels.size(), kNone);
  int64_t number = 0;
  for (const std::string& line : record::read_lines(path, "predictions")) {
    ++number;
    if (trim(line).empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("index") || !json["index"].is_number_integer() ||
        !json.contains("label") || !json["label"].is_string()) {
      throw DataError(
          "{}:{}: expected a line of JSON with \"index\" and \"label\", as `syncopate predict` writes it",
          path, number);
    }
    const auto index = json["index"].get<int64_t>();
    if (index < 0 || index >= static_cast<int64_t>(answers.size())) {
      throw DataError("{}:{}: there is no example {} in data of {}; score the file they were made from", path,
                      number, index, answers.size());
    }
    const auto found = std::find(truth.names.begin(), truth.names.end(), json["label"].get<std::string>());
    // A label that the data lack is an answer like another: a wrong one.
    answers[static_cast<size_t>(index)] = found == truth.names.end() ? kOther : found - truth.names.begin();
    if (found == truth.names.end()) others.insert(json["label"].get<std::string>());
  }
  return answers;
}

Measures score_labels(const Labelled& truth, const std::string& predictions) {
  std::set<std::string> others;
  const std::vector<int64_t> answers = read_labels(predictions, truth, others);
  const size_t classes = truth.names.size();
  std::vector<double> truths(classes), answered(classes), right(classes);
  double total = 0, missing = 0, all_right = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (truth.labels[i] < 0) continue;
    const auto label = static_cast<size_t>(truth.labels[i]);
    ++total;
    ++truths[label];
    if (answers[i] == kNone) ++missing;
    if (answers[i] >= 0) ++answered[static_cast<size_t>(answers[i])];
    if (answers[i] != truth.labels[i]) continue;
    ++right[label];
    ++all_right;
  }
  if (total == 0) {
    throw DataError(
        "the data have no labels to score against; name their column with --label, or give another file");
  }
  double f1 = 0, seen = static_cast<double>(others.size());  // of those F1 is 0
  for (size_t c = 0; c < classes; ++c) {
    if (truths[c] + answered[c] == 0) continue;
    f1 += 2 * right[c] / (truths[c] + answered[c]);
    ++seen;
  }
  return {{"accuracy", all_right / total}, {"macro_f1", f1 / seen}, {"total", total}, {"missing", missing}};
}

void tell_notes(const PredictionsFile& file, const std::vector<std::string>& notes) {
  if (!file.note) return;
  for (const std::string& note : notes) file.note(note);
}

}  // namespace

Measures score_text_labels(const PredictionsFile& file) {
  const corpora::TextSource source = text_source(file.task, file.data, file.columns);
  // Answers are numbered as `predict` reads the rows; those that count are the rows that `evaluate` reads,
  // which leaves some out and refuses others. Both keep the order of the file.
  const corpora::TextTask texts = corpora::load_task(source, corpora::Purpose::kPredict);
  const corpora::TextTask counted = corpora::load_task(source, corpora::Purpose::kEvaluate);
  tell_notes(file, counted.notes);
  Labelled truth{.names = counted.labels, .labels = {}};
  size_t next = 0;
  for (const auto& example : texts.test) {
    const bool counts = next < counted.test.size() && example.a == counted.test[next].a &&
                        example.b == counted.test[next].b && example.label == counted.test[next].label;
    truth.labels.push_back(counts ? counted.test[next++].label : -1);
  }
  check(next == counted.test.size(), "every row that is evaluated is one that is predicted");
  return score_labels(truth, file.predictions);
}

Measures score_image_labels(const PredictionsFile& file) {
  const corpora::ImageTask images = load_images(file.task, file.data, corpora::Purpose::kEvaluate);
  tell_notes(file, images.notes);
  return score_labels(
      {.names = images.labels, .labels = {images.test.labels.begin(), images.test.labels.end()}},
      file.predictions);
}

Measures score_answers(const PredictionsFile& file) {
  const corpora::SquadTask questions =
      load_questions(file.task, file.data, corpora::Purpose::kEvaluate, file.columns.encoding);
  tell_notes(file, questions.notes);
  const corpora::SquadScore score =
      corpora::score_predictions(questions.test, corpora::read_predictions(file.predictions));
  return {{"exact_match", score.exact_match},
          {"f1", score.f1},
          {"total", static_cast<double>(score.total)},
          {"missing", static_cast<double>(score.missing)}};
}

Measures score_file(const PredictionsFile& file) {
  const auto score = family_of(file.task).score_file;
  if (score == nullptr) {
    throw ConfigError("the task {} has no predictions file to score; use `syncopate evaluate` with the model",
                      file.task);
  }
  return score(file);
}

}  // namespace syncopate::tasks
