#include "syncopate/tasks/chosen_texts.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {
namespace {

using corpora::Split;
using corpora::TextExample;

uint64_t key_of(const TextExample& example) { return corpora::validation_key(example.a, example.b); }

std::vector<uint64_t> keys_of(const corpora::TextTaskReader& reader, Split wanted) {
  std::vector<uint64_t> keys;
  reader.read([&](Split split, const TextExample& example) {
    if (split == wanted) keys.push_back(key_of(example));
  });
  return keys;
}

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

/// Collects texts into batches, one for each split.
class Batches {
 public:
  explicit Batches(const std::function<void(ChosenTexts::Batch)>& use) : use_(use) {
    for (const Split split : corpora::kSplits) of(split).batch.split = split;
  }
  void add(Split split, const TextExample& example) {
    constexpr size_t kBytes = size_t{1} << 20, kTexts = 1024;
    Growing& growing = of(split);
    growing.bytes += example.a.size() + example.b.size();
    growing.batch.texts.push_back(example);
    if (growing.bytes >= kBytes || growing.batch.texts.size() >= kTexts) give(split);
  }
  void finish() {
    for (const Split split : corpora::kSplits) give(split);
  }

 private:
  struct Growing {
    ChosenTexts::Batch batch;
    size_t bytes = 0;
  };
  Growing& of(Split split) { return growing_[static_cast<size_t>(split)]; }
  void give(Split split) {
    if (of(split).batch.texts.empty()) return;
    use_(std::exchange(of(split), {.batch = {.split = split, .texts = {}}}).batch);
  }

  const std::function<void(ChosenTexts::Batch)>& use_;
  std::array<Growing, std::size(corpora::kSplits)> growing_;
};

}  // namespace

ChosenTexts::ChosenTexts(const spec::RunSpec& spec)
    : task_(corpora::open_task(text_source(spec.task.name, spec.task.data, spec.task.columns()),
                               corpora::Purpose::kTrain)) {
  const corpora::TextTaskReader::Found& found = task_->found();
  notes_ = found.notes;
  std::vector<int64_t> train = numbers(found.train), test = numbers(found.test), held_out;
  if (validation_share(spec, train.size()) > 0) {
    const std::vector<uint64_t> keys = keys_of(*task_, Split::kTrain);
    held_out = hold_out_validation(
        train, spec, [&](int64_t i) { return keys.at(static_cast<size_t>(i)); }, "examples", notes_);
  }
  size_ = static_cast<int64_t>(held_out.size());
  if (!spec.validation().path.empty()) {
    corpora::TextSource source = text_source(spec.task.name, spec.validation().path, spec.task.columns());
    source.labels = found.labels;
    validation_ = corpora::open_task(source, corpora::Purpose::kEvaluate);
    notes_.insert(notes_.end(), validation_->found().notes.begin(), validation_->found().notes.end());
    require_other_than_test(keys_of(*validation_, Split::kTest), keys_of(*task_, Split::kTest));
    size_ = validation_->found().test;
  }
  notes_.insert(notes_.end(), found.training_notes.begin(), found.training_notes.end());
  validates_ = size_ > 0;
  keep_subset(train, spec);
  keep_sample(test, spec);
  parts_ = parts_among(found.parts, test);
  size_ += static_cast<int64_t>(train.size() + test.size());
  train_.resize(static_cast<size_t>(found.train));
  test_.resize(static_cast<size_t>(found.test));
  for (const int64_t i : train) train_[static_cast<size_t>(i)] = Split::kTrain;
  for (const int64_t i : held_out) train_[static_cast<size_t>(i)] = Split::kValidation;
  for (const int64_t i : test) test_[static_cast<size_t>(i)] = Split::kTest;
}

double ChosenTexts::mean_letters() const {
  const corpora::TextTaskReader::Found& found = task_->found();
  return static_cast<double>(found.letters) /
         static_cast<double>(std::max<int64_t>(1, found.train + found.test));
}

void ChosenTexts::read(const std::function<void(Batch)>& use) const {
  Batches batches(use);
  size_t next_train = 0, next_test = 0;
  task_->read([&](Split split, const TextExample& example) {
    const auto& becomes = split == Split::kTest ? test_ : train_;
    size_t& next = split == Split::kTest ? next_test : next_train;
    if (next >= becomes.size())
      throw DataError(
          "the data have more rows than when they were first read; start again when they are whole");
    if (const auto chosen = becomes[next++]) batches.add(*chosen, example);
  });
  if (validation_) {
    validation_->read([&](Split, const TextExample& example) { batches.add(Split::kValidation, example); });
  }
  batches.finish();
}

}  // namespace syncopate::tasks
