#include "syncopate/run/score_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/data/cifar10.h"
#include "syncopate/data/definition_qa.h"
#include "syncopate/data/idx.h"
#include "syncopate/data/squad_score.h"
#include "syncopate/data/task.h"
#include "syncopate/record/lines.h"
#include "syncopate/run/materials.h"
#include "syncopate/train/metric.h"

namespace syncopate::run {
namespace {

using Measures = std::map<std::string, double>;

/// The truth of a task with labels.
struct Labelled {
  std::vector<std::string> names;
  std::vector<int64_t> labels;  ///< by example
};

Labelled load_labels(const std::string& task, const std::string& path, const ColumnSpec& columns) {
  Labelled truth;
  if (task == "cifar10" || task == "idx") {
    const data::ImageTask images =
        task == "cifar10"
            ? data::load_cifar10(path, data::Purpose::kEvaluate)
            : data::load_mnist(path.empty() ? "fashion-mnist" : "mnist", path, data::Purpose::kEvaluate);
    truth.names = images.labels;
    truth.labels.assign(images.test.labels.begin(), images.test.labels.end());
    return truth;
  }
  const data::TextTask texts = data::load_task({.task = task,
                                                .path = path,
                                                .text = columns.text,
                                                .text_pair = columns.text_pair,
                                                .label = columns.label,
                                                .labels = {}},
                                               data::Purpose::kEvaluate);
  truth.names = texts.labels;
  for (const auto& example : texts.test) truth.labels.push_back(example.label);
  return truth;
}

/// The number of each example's predicted label; -1 where there is none.
std::vector<int64_t> read_labels(const std::string& path, const Labelled& truth) {
  std::vector<int64_t> answers(truth.labels.size(), -1);
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
    const std::string label = json["label"];
    const auto found = std::find(truth.names.begin(), truth.names.end(), label);
    if (found == truth.names.end()) {
      throw DataError("{}:{}: the data have no label \"{}\"{}", path, number, label.substr(0, 60),
                      suggestion(label, truth.names));
    }
    answers[static_cast<size_t>(index)] = found - truth.names.begin();
  }
  return answers;
}

Measures score_labels(const Labelled& truth, const std::vector<int64_t>& answers) {
  // One class more stands for "no answer": wrong whatever the truth is.
  const auto classes = static_cast<int64_t>(truth.names.size());
  tensor::Batch batch;
  const auto size = static_cast<int64_t>(answers.size());
  const at::Tensor logits = at::zeros({size, classes + 1});
  Measures measures{{"total", static_cast<double>(size)}, {"missing", 0}};
  for (int64_t i = 0; i < size; ++i) {
    const int64_t answer = answers[static_cast<size_t>(i)];
    logits[i][answer < 0 ? classes : answer] = 1;
    if (answer < 0) measures["missing"] += 1;
    batch.ids.push_back(i);
  }
  batch.fields["labels"] = at::tensor(truth.labels, at::kLong);
  const auto metric = train::classification({.classes = classes + 1, .top = 0, .parts = {}})();
  metric->add(logits, batch);
  record::EvalRecord record;
  metric->conclude(*comm::open_alone(), record);
  measures["accuracy"] = record.measures.at("accuracy");
  // The mean over the classes that are labels: "no answer" is not one of them.
  const double f1 = record.measures.at("macro_f1");
  if (measures["missing"] == 0) {
    measures["macro_f1"] = f1;
  } else {
    std::set<int64_t> seen(truth.labels.begin(), truth.labels.end());
    for (const int64_t answer : answers) {
      if (answer >= 0) seen.insert(answer);
    }
    const auto labels = static_cast<double>(seen.size());
    measures["macro_f1"] = f1 * (labels + 1) / labels;
  }
  return measures;
}

}  // namespace

Measures score_file(const std::string& task, const std::string& data, const std::string& predictions,
                    const ColumnSpec& columns) {
  family_of(task);
  if (task == "squad" || task == "definition-qa") {
    const data::SquadTask questions = task == "squad"
                                          ? data::load_squad(data, data::Purpose::kEvaluate)
                                          : data::load_definition_qa(data, data::Purpose::kEvaluate);
    const data::SquadScore score =
        data::score_predictions(questions.test, data::read_predictions(predictions));
    return {{"exact_match", score.exact_match},
            {"f1", score.f1},
            {"total", static_cast<double>(score.total)},
            {"missing", static_cast<double>(score.missing)}};
  }
  if (task == "mlm" || task == "clm") {
    throw ConfigError("the task {} has no predictions file to score; use `syncopate evaluate` with the model",
                      task);
  }
  const Labelled truth = load_labels(task, data, columns);
  return score_labels(truth, read_labels(predictions, truth));
}

}  // namespace syncopate::run
