#include "syncopate/tasks/chosen_texts.h"

#include <algorithm>

#include "syncopate/corpora/split_batches.h"
#include "syncopate/corpora/validation.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {
namespace {

using corpora::Split;
using corpora::TextExample;

uint64_t key_of(const TextExample& example) { return corpora::validation_key(example.a, example.b); }

std::vector<uint64_t> keys_of(const corpora::TextTaskReader& reader, Split split) {
  std::vector<uint64_t> keys;
  keys.reserve(static_cast<size_t>(split == Split::kTest ? reader.found().test : reader.found().train));
  reader.read([&](Split, const TextExample& example) { keys.push_back(key_of(example)); }, split);
  return keys;
}

using Uses = std::vector<std::optional<Split>>;

/// Of those that are used as `split` only these stay in use, by their places among them.
void keep(Uses& uses, Split split, const std::vector<int64_t>& places) {
  auto next = places.begin();
  int64_t place = 0;
  for (std::optional<Split>& use : uses) {
    if (use != split) continue;
    if (next != places.end() && *next == place++) {
      ++next;
    } else {
      use.reset();
    }
  }
}

}  // namespace

ChosenTexts::ChosenTexts(const spec::RunSpec& spec)
    : task_(corpora::open_task(text_source(spec.task.name, spec.task.data, spec.task.columns()),
                               corpora::Purpose::kTrain)) {
  const corpora::TextTaskReader::Found& found = task_->found();
  train_.assign(static_cast<size_t>(found.train), Split::kTrain);
  test_.assign(static_cast<size_t>(found.test), Split::kTest);
  notes_ = found.notes;
  int64_t train = found.train, validation = 0;
  if (const double share = validation_share(spec, train_.size()); share > 0) {
    const std::vector<char> held = corpora::held_out_for_validation(keys_of(*task_, Split::kTrain), share);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i] != 0) train_[i] = Split::kValidation;
    }
    validation = std::count(train_.begin(), train_.end(), Split::kValidation);
    notes_.push_back(validation_note(static_cast<size_t>(validation), train_.size(), "examples"));
    train -= validation;
  }
  if (!spec.validation().path.empty()) {
    corpora::TextSource source = text_source(spec.task.name, spec.validation().path, spec.task.columns());
    source.labels = found.labels;
    validation_ = corpora::open_task(source, corpora::Purpose::kEvaluate);
    notes_.insert(notes_.end(), validation_->found().notes.begin(), validation_->found().notes.end());
    require_other_than_test(keys_of(*validation_, Split::kTest), keys_of(*task_, Split::kTest));
    validation = validation_->found().test;
  }
  validates_ = validation > 0;
  notes_.insert(notes_.end(), found.training_notes.begin(), found.training_notes.end());
  if (spec.task.limit > 0 && spec.task.limit < train) {
    keep(train_, Split::kTrain, chosen_examples(train, spec.task.limit, spec.train.seed));
    train = spec.task.limit;
  }
  const std::vector<int64_t> sample = sampled_examples(found.test, spec.task.test_limit);
  keep(test_, Split::kTest, sample);
  parts_ = parts_among(found.parts, sample);
  size_ = train + validation + static_cast<int64_t>(sample.size());
}

double ChosenTexts::mean_letters() const {
  const corpora::TextTaskReader::Found& found = task_->found();
  return static_cast<double>(found.letters) /
         static_cast<double>(std::max<int64_t>(1, found.train + found.test));
}

void ChosenTexts::read(const std::function<void(Batch)>& use, std::optional<Split> only) const {
  corpora::SplitBatches<Batch> batches(use);
  size_t next_train = 0, next_test = 0;
  const auto add = [&](Split split, const TextExample& example) {
    const std::optional<Split> chosen =
        split == Split::kTest ? test_.at(next_test++) : train_.at(next_train++);
    if (chosen && (!only || only == chosen)) batches.add(*chosen, example);
  };
  std::optional<Split> of_task = only;
  if (only == Split::kValidation) of_task = Split::kTrain;  // of which it may be a part
  task_->read(add, of_task);
  if (validation_ && (!only || only == Split::kValidation)) {
    validation_->read([&](Split, const TextExample& example) { batches.add(Split::kValidation, example); });
  }
  batches.finish();
}

}  // namespace syncopate::tasks
