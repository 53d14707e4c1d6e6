// Texts, single or in pairs, and the class of each: supersense, GLUE's tasks, tables.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/corpora/task.h"
#include "syncopate/data/text_dataset.h"
#include "syncopate/tasks/classified_texts.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"
#include "syncopate/tasks/wordpiece_start.h"

namespace syncopate::tasks {
namespace {

/// A folder may name its classes in another order than the task: puts the head's rows into the task's. Other
/// names altogether are taken in their order, with a note.
void align_labels(nn::BertClassifier& model, const std::vector<std::string>& labels,
                  std::vector<std::string>& notes) {
  const std::vector<std::string> names = model.config().labels;
  if (names == labels || names.empty()) return;
  if (!std::is_permutation(names.begin(), names.end(), labels.begin(), labels.end())) {
    notes.push_back(
        fmt::format("the model's classes are called {}, the data's {}: they are taken in this order",
                    fmt::join(names, ", "), fmt::join(labels, ", ")));
    return;
  }
  std::vector<int64_t> order;
  for (const std::string& label : labels)
    order.push_back(std::find(names.begin(), names.end(), label) - names.begin());
  const at::Tensor rows = at::tensor(order, at::kLong);
  for (const auto& [name, parameter] : model.parameters()) {
    if (name.starts_with("classifier.")) parameter.detach().copy_(parameter.detach().index_select(0, rows));
  }
  model.name_labels(labels);
}

train::MakeMetric metric_of(const std::vector<std::string>& labels,
                            const std::vector<corpora::TestPart>& parts) {
  train::ClassificationOptions options{.classes = static_cast<int64_t>(labels.size()), .top = 0, .parts = {}};
  for (const auto& part : parts) options.parts.push_back({part.name, part.begin, part.end});
  return train::classification(std::move(options));
}

}  // namespace

std::vector<corpora::TestPart> parts_among(const std::vector<corpora::TestPart>& parts,
                                           const std::vector<int64_t>& kept) {
  const auto before = [&](int64_t number) {
    return std::lower_bound(kept.begin(), kept.end(), number) - kept.begin();
  };
  std::vector<corpora::TestPart> found;
  for (const corpora::TestPart& part : parts)
    found.push_back({part.name, before(part.begin), before(part.end)});
  return found;
}

corpora::FileForm file_form(const spec::ColumnSpec& columns) {
  return {.encoding = columns.encoding, .separator = columns.separator};
}

corpora::TextSource text_source(const std::string& task, const std::string& path,
                                const spec::ColumnSpec& columns) {
  return {.task = task,
          .path = path,
          .text = columns.text,
          .text_pair = columns.text_pair,
          .label = columns.label,
          .labels = {},
          .form = file_form(columns)};
}

namespace {

/// The texts given on the command line, as a task's data.
corpora::TextTask task_of_prompts(const spec::ScoreSpec& spec, const corpora::TextSource& source) {
  const std::optional<bool> pairs = corpora::reads_pairs(source);
  if (pairs == false && !spec.pairs.empty()) {
    throw ConfigError("--prompt-pair is for tasks of pairs; {} reads single texts", spec.task);
  }
  if ((pairs == true || !spec.pairs.empty()) && spec.pairs.size() != spec.prompts.size()) {
    throw ConfigError(
        "the task {} reads pairs: give a --prompt-pair with each --prompt (there are {} and {})", spec.task,
        spec.pairs.size(), spec.prompts.size());
  }
  corpora::TextTask task{.name = spec.task, .labels = source.labels, .train = {}, .test = {}};
  for (size_t i = 0; i < spec.prompts.size(); ++i) {
    task.test.push_back({.a = spec.prompts[i], .b = spec.pairs.empty() ? "" : spec.pairs[i], .label = -1});
  }
  return task;
}

/// One line of JSON an example: its logits, what they mean, and the class.
Scoring::Answer answer_with_classes(std::vector<std::string> labels, std::vector<std::string> texts,
                                    std::vector<std::string> pairs) {
  return [=](const Scoring::ForEachOutput& outputs, const std::function<void(const std::string&)>& line) {
    outputs([&](const at::Tensor& output, const tensor::Batch& batch) {
      const at::Tensor logits_BC = output.to(at::kCPU, at::kFloat).contiguous();
      const at::Tensor shares_BC = at::softmax(logits_BC, -1);
      const int64_t width = logits_BC.size(1);
      const auto row_of = [&](const at::Tensor& table, int64_t row) {
        const float* const first = table.data_ptr<float>() + row * width;
        return std::vector<float>(first, first + width);
      };
      for (int64_t row = 0; row < logits_BC.size(0); ++row) {
        const std::vector<float> logits = row_of(logits_BC, row);
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        const auto index = static_cast<size_t>(batch.ids[static_cast<size_t>(row)]);
        nlohmann::ordered_json answer{{"index", index}};
        if (!texts.empty()) answer["text"] = texts[index];
        if (!pairs.empty()) answer["text_pair"] = pairs[index];
        answer["logits"] = logits;
        answer["probabilities"] = row_of(shares_BC, row);
        answer["label"] = labels[static_cast<size_t>(best)];
        line(answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      }
    });
  };
}

}  // namespace

TaskSetup make_classification(const spec::RunSpec& spec, comm::Group& group) {
  const Start start = find_start(spec);
  const int64_t max_length = spec.max_length();
  require_bert_fits(spec, start, max_length);
  ClassifiedTexts texts(spec, group.rank() == 0);
  const std::shared_ptr<text::WordPiece> tokenizer = find_vocabulary(
      spec, start, [&](bool wanted) { return texts.vocabulary(wanted); }, group);
  require_vocabulary_fits(spec, start, *tokenizer);
  const ClassifiedExamples examples = texts.examples(*tokenizer, max_length);
  auto loaded = start_bert<nn::BertClassifier>(spec, start, *tokenizer, max_length,
                                               static_cast<int64_t>(examples.labels.size()));
  nn::BertClassifier& model = *loaded.model;
  if (!loaded.fresh_head) align_labels(model, examples.labels, loaded.notes);
  model.name_labels(examples.labels);
  TaskSetup made;
  made.notes = std::move(loaded.notes);
  made.notes.insert(made.notes.end(), examples.notes.begin(), examples.notes.end());
  made.model = std::move(loaded.model);
  const auto dataset = [&](const std::shared_ptr<const data::TextExamples>& split) {
    return std::make_shared<data::TextDataset>(split, tokenizer->pad());
  };
  made.train = dataset(examples.train);
  made.test = dataset(examples.test);
  made.metric = metric_of(examples.labels, examples.parts);
  if (examples.validation) {
    made.validation = dataset(examples.validation);
    made.validation_metric = metric_of(examples.labels, {});  // the parts are the test split's
  }
  set_vocabulary(made, model, tokenizer, max_length);
  return made;
}

Scoring score_classification(const spec::ScoreSpec& spec, bool predict) {
  const text::WordPiece tokenizer = text::WordPiece::load(vocabulary_of(spec.model));
  auto loaded = nn::load_bert<nn::BertClassifier>(spec.model, {});
  if (loaded.fresh_head) {
    throw DataError("the model in {} has no classification head; train it on the task first", spec.model);
  }
  const nn::BertConfig& config = loaded.model->config();
  corpora::TextSource source = text_source(spec.task, spec.data, spec.columns);
  source.labels = config.labels;
  if (source.labels.empty()) {  // transformers' names for classes without one
    for (int64_t i = 0; i < config.num_labels; ++i) source.labels.push_back(fmt::format("LABEL_{}", i));
  }
  const auto task = spec.prompts.empty() ? corpora::open_task(source, purpose_of(spec, predict))
                                         : corpora::reader_of(task_of_prompts(spec, source));
  const std::vector<std::string>& labels = task->found().labels;
  if (config.num_labels != static_cast<int64_t>(labels.size())) {
    throw DataError(
        "the model in {} tells {} classes apart but the task {} has {}; use a model trained on this task",
        spec.model, config.num_labels, spec.task, labels.size());
  }
  std::vector<std::string> notes = task->found().notes;
  align_labels(*loaded.model, labels, notes);
  require_vocabulary_fits(tokenizer, config, spec.model, "in it");
  const int64_t max_length = scored_length(spec, config.max_positions);
  Scoring made;
  const auto examples = std::make_shared<data::MemoryExamples>();
  task->read([&](corpora::Split,
                 const corpora::TextExample& example) { examples->append(example, tokenizer, max_length); },
             corpora::Split::kTest);  // of a file that was parted to train on it, the rest is not scored
  made.test = std::make_shared<data::TextDataset>(examples, tokenizer.pad());
  made.metric = metric_of(labels, task->found().parts);
  made.notes = std::move(notes);
  made.answer = answer_with_classes(labels, spec.prompts, spec.pairs);
  made.model = std::move(loaded.model);
  return made;
}

}  // namespace syncopate::tasks
