// squad, definition-qa: questions whose answer is a stretch of a paragraph.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/corpora/squad/squad.h"
#include "syncopate/corpora/wordnet/definition_qa.h"
#include "syncopate/data/squad_answers.h"
#include "syncopate/data/squad_dataset.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"
#include "syncopate/tasks/wordpiece_start.h"
#include "syncopate/train/squad_metric.h"

namespace syncopate::tasks {
namespace {

std::vector<std::string_view> texts_of(const corpora::SquadTask& task) {
  std::vector<std::string_view> texts;
  for (const corpora::Question& question : task.train) {
    texts.push_back(question.question);
    texts.push_back(task.contexts[static_cast<size_t>(question.context)]);
  }
  return texts;
}

std::vector<uint64_t> keys_of_test(const corpora::SquadTask& task) {
  std::vector<uint64_t> keys;
  for (const corpora::Question& question : task.test) {
    keys.push_back(corpora::validation_key(task.contexts[static_cast<size_t>(question.context)],
                                           question.id + '\n' + question.question));
  }
  return keys;
}

}  // namespace

corpora::SquadTask load_questions(const std::string& task, const std::string& path, corpora::Purpose purpose,
                                  const std::string& encoding) {
  return task == "definition-qa" ? corpora::load_definition_qa(path, purpose)
                                 : corpora::load_squad(path, purpose, encoding);
}

TaskSetup make_questions(const spec::RunSpec& spec, comm::Group& group) {
  const Start start = find_start(spec);
  corpora::SquadTask task =
      load_questions(spec.task.name, spec.task.data, corpora::Purpose::kTrain, spec.task.encoding);
  corpora::SquadTask validation;
  validation.test = hold_out_validation(
      task.train, spec,
      [&](const corpora::Question& question) {  // a paragraph's questions fall on one side
        return corpora::validation_key(task.contexts[static_cast<size_t>(question.context)]);
      },
      "questions", task.notes);
  if (const std::string path = spec.validation().path; !path.empty()) {
    validation = load_questions(spec.task.name, path, corpora::Purpose::kEvaluate, spec.task.encoding);
    task.notes.insert(task.notes.end(), validation.notes.begin(), validation.notes.end());
    require_other_than_test(keys_of_test(validation), keys_of_test(task));
  } else if (!validation.test.empty()) {
    validation.contexts = task.contexts;
  }
  keep_subset(task.train, spec);
  keep_sample(task.test, spec);
  const std::shared_ptr<text::WordPiece> tokenizer = find_vocabulary(spec, start, texts_of(task), group);
  const int64_t max_length = spec.max_length();
  auto loaded = start_bert<nn::BertQuestionAnswering>(spec, start, *tokenizer, max_length, 2);
  nn::BertQuestionAnswering& model = *loaded.model;
  const data::WindowOptions windows{.max_length = max_length, .stride = spec.task.stride};
  TaskSetup made;
  made.notes = std::move(loaded.notes);
  made.notes.insert(made.notes.end(), task.notes.begin(), task.notes.end());
  made.train = std::make_shared<data::SquadDataset>(task.train, task.contexts, *tokenizer, windows);
  const auto test = std::make_shared<data::SquadDataset>(task.test, task.contexts, *tokenizer, windows);
  made.test = test;
  made.metric = train::squad(test, std::move(task.test));
  if (!validation.test.empty()) {
    const auto held =
        std::make_shared<data::SquadDataset>(validation.test, validation.contexts, *tokenizer, windows);
    made.validation = held;
    made.validation_metric = train::squad(held, std::move(validation.test));
  }
  made.model = std::move(loaded.model);
  set_vocabulary(made, model, tokenizer, max_length);
  return made;
}

Scoring score_questions(const spec::ScoreSpec& spec, bool predict) {
  corpora::SquadTask task =
      load_questions(spec.task, spec.data, purpose_of(spec, predict), spec.columns.encoding);
  const text::WordPiece tokenizer = text::WordPiece::load(vocabulary_of(spec.model));
  auto loaded = nn::load_bert<nn::BertQuestionAnswering>(spec.model, {});
  if (loaded.fresh_head) {
    throw DataError("the model in {} has no head for questions; train it with --task squad first",
                    spec.model);
  }
  require_vocabulary_fits(tokenizer, loaded.model->config(), spec.model, "in it");
  const data::WindowOptions windows{.max_length = scored_length(spec, loaded.model->config().max_positions),
                                    .stride = spec.stride};
  const auto dataset =
      std::make_shared<const data::SquadDataset>(task.test, task.contexts, tokenizer, windows);
  Scoring made;
  made.model = std::move(loaded.model);
  made.test = dataset;
  made.notes = task.notes;
  made.answer = [dataset, questions = task.test, may_be_empty = spec.may_be_empty](
                    const Scoring::ForEachOutput& outputs,
                    const std::function<void(const std::string&)>& line) {
    data::AnswerOptions options;
    options.may_be_empty = may_be_empty || corpora::has_impossible(questions);
    std::vector<data::FeatureAnswers> spans;
    outputs([&](const at::Tensor& output, const tensor::Batch& batch) {
      train::collect_spans(*dataset, output, batch, options, spans);
    });
    const std::vector<std::string> answers = data::final_answers(*dataset, spans, options);
    nlohmann::ordered_json by_id = nlohmann::ordered_json::object();
    for (size_t i = 0; i < questions.size(); ++i) by_id[questions[i].id] = answers[i];
    line(by_id.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  made.metric = train::squad(dataset, std::move(task.test));
  return made;
}

}  // namespace syncopate::tasks
