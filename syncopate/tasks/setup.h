#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/corpora/validation.h"
#include "syncopate/data/dataset.h"
#include "syncopate/nn/model.h"
#include "syncopate/spec/score_spec.h"
#include "syncopate/train/metric.h"

// What each family of tasks brings to a run. The families differ in files, model and score; a run sees none
// of it.
namespace syncopate::tasks {

/// What a run trains on, what it trains and how that is scored and saved.
struct TaskSetup {
  std::unique_ptr<nn::Model> model;
  std::shared_ptr<const data::Dataset> train, test;
  train::MakeMetric metric;
  std::shared_ptr<const data::Dataset> validation;  ///< none where nothing was held out for it
  train::MakeMetric validation_metric;
  /// Writes the model and what it needs to be used (a Hugging Face folder) into an empty folder.
  std::function<void(const std::filesystem::path&)> save;
  /// Lets a model that computes together with other ranks reach them; empty: none does. Called once, before
  /// the first step.
  std::function<void(comm::Group&)> connect;
  std::string input;               ///< what the model reads: "8000 words", "3 x 32 x 32 pixels"
  std::string fingerprint;         ///< of the vocabulary, or of whatever else decides what examples become
  std::vector<std::string> notes;  ///< to tell the user: a fresh head, tensors left out, rows skipped
};

/// A file of predictions and the data it answers.
struct PredictionsFile {
  std::string task, data, predictions;
  spec::ColumnSpec columns;
  std::function<void(const std::string&)> note{};  ///< told what the reader noted; may be empty
};

/// A trained model and what it is to be scored on or to answer.
struct Scoring {
  std::unique_ptr<nn::Model> model;
  std::shared_ptr<const data::Dataset> test;  ///< none where answers come from texts given
  train::MakeMetric metric;
  /// Answers: one JSON line after the other. `outputs` runs the model over the test set.
  using ForEachOutput =
      std::function<void(const std::function<void(const at::Tensor&, const tensor::Batch&)>&)>;
  using Answer =
      std::function<void(const ForEachOutput& outputs, const std::function<void(const std::string&)>& line)>;
  Answer answer;
  std::vector<std::string> notes;
};

/// How a family of tasks is made; spec/tasks.h says what it is called and which tasks it has.
struct Family {
  std::string_view name;
  TaskSetup (*make)(const spec::RunSpec& spec, comm::Group& group);
  Scoring (*score)(const spec::ScoreSpec& spec, bool predict);
  /// Scores a file of predictions (tasks/score_file.h); null where a family has none.
  std::map<std::string, double> (*score_file)(const PredictionsFile& file);
};

const std::vector<Family>& families();
const Family& family_of(const std::string& task);  ///< throws ConfigError with a suggestion

// The families, one file each.
TaskSetup make_classification(const spec::RunSpec& spec, comm::Group& group);
Scoring score_classification(const spec::ScoreSpec& spec, bool predict);
TaskSetup make_masked_words(const spec::RunSpec& spec, comm::Group& group);
Scoring score_masked_words(const spec::ScoreSpec& spec, bool predict);
TaskSetup make_next_words(const spec::RunSpec& spec, comm::Group& group);
Scoring score_next_words(const spec::ScoreSpec& spec, bool predict);
TaskSetup make_questions(const spec::RunSpec& spec, comm::Group& group);
Scoring score_questions(const spec::ScoreSpec& spec, bool predict);
TaskSetup make_images(const spec::RunSpec& spec, comm::Group& group);
Scoring score_images(const spec::ScoreSpec& spec, bool predict);

/// The model of a run's folder; any other folder is the model's own. Throws DataError for a run that has not
/// finished.
std::string model_folder_of(const std::string& path);

/// Where a run's model starts: the folder of --init-from or --model, or none for a preset.
struct Start {
  std::string folder;       ///< empty: a preset
  bool fresh_head = false;  ///< --init-from: the task is another one
};

/// Resolves --model and --init-from (a run's folder stands for the model in it). Throws ConfigError for what
/// is neither a preset of the task's family nor a folder.
Start find_start(const spec::RunSpec& spec);

/// Throws ConfigError unless the folder that a run starts from is of the shape that --model names, where both
/// are given.
void require_same_shape(const spec::RunSpec& spec, bool same);

/// The seed of what starts fresh in a run.
uint64_t start_seed(const spec::RunSpec& spec);

/// The number of tokens a folder's model was trained with, as its tokenizer_config.json says; `usual` where
/// it does not; never more than `most`.
int64_t trained_length(const std::filesystem::path& folder, int64_t usual, int64_t most);
/// Notes it there.
void save_trained_length(const std::filesystem::path& folder, int64_t max_length);

/// Throws ConfigError unless texts of `max_length` fit a model with so many positions.
void require_length_fits(int64_t max_length, int64_t positions, const std::string& model);

/// Tokens per example when scoring: as asked, or as trained.
int64_t scored_length(const spec::ScoreSpec& spec, int64_t positions);

/// A checksum of a vocabulary.
std::string fingerprint_of(const std::vector<std::string>& words);

/// The seeded subset of --limit, and the sample of task.test_limit, of a data set.
std::shared_ptr<const data::Dataset> limited(std::shared_ptr<const data::Dataset> whole,
                                             const spec::RunSpec& spec);
std::shared_ptr<const data::Dataset> sampled(std::shared_ptr<const data::Dataset> whole,
                                             const spec::RunSpec& spec);

/// A seeded choice of `limit` of `size` numbers, ascending; all of them when limit is 0 or not below size.
/// The same for every strategy and number of workers.
std::vector<int64_t> chosen_examples(int64_t size, int64_t limit, int64_t seed);

/// For the user: that so many of the training data became the validation split.
std::string validation_note(size_t held_out, size_t of, const std::string& unit);

/// Throws ConfigError where the validation file holds all of the test split, which would choose then. Both by
/// corpora::validation_key of their examples, and the test split whole, before task.test_limit.
void require_other_than_test(const std::vector<uint64_t>& validation, const std::vector<uint64_t>& test);

/// The share of `size` training examples that is held out, where it is: less with --limit, so that it is a
/// share of what is trained on.
double validation_share(const spec::RunSpec& spec, size_t size);

/// Takes the share of task.validation out of `items`, by `key` of an item (corpora::validation_key); empty
/// where the split is off or a file. Before --limit: the same examples are held out for every seed.
template <typename Item, typename Key>
std::vector<Item> hold_out_validation(std::vector<Item>& items, const spec::RunSpec& spec, const Key& key,
                                      const std::string& unit, std::vector<std::string>& notes) {
  const double share = validation_share(spec, items.size());
  if (share == 0) return {};
  std::vector<uint64_t> keys;
  for (const Item& item : items) keys.push_back(key(item));
  std::vector<Item> held = corpora::take_out(items, corpora::held_out_for_validation(keys, share));
  notes.push_back(validation_note(held.size(), keys.size(), unit));
  return held;
}

/// Keeps of `items` the seeded subset of --limit.
template <typename Item>
void keep_subset(std::vector<Item>& items, const spec::RunSpec& spec) {
  const auto size = static_cast<int64_t>(items.size());
  if (spec.task.limit == 0 || spec.task.limit >= size) return;
  std::vector<Item> kept;
  for (const int64_t i : chosen_examples(size, spec.task.limit, spec.train.seed))
    kept.push_back(std::move(items[static_cast<size_t>(i)]));
  items = std::move(kept);
}

/// `limit` of `size` numbers, ascending, by a hash of the number alone: the same for every seed, strategy and
/// number of workers, and a larger sample holds a smaller one. All of them when limit is 0 or not below size.
std::vector<int64_t> sampled_examples(int64_t size, int64_t limit);

/// Keeps of `items` the sample of task.test_limit and says which they were.
template <typename Item>
std::vector<int64_t> keep_sample(std::vector<Item>& items, const spec::RunSpec& spec) {
  const std::vector<int64_t> chosen =
      sampled_examples(static_cast<int64_t>(items.size()), spec.task.test_limit);
  if (chosen.size() == items.size()) return chosen;
  std::vector<Item> kept;
  for (const int64_t i : chosen) kept.push_back(std::move(items[static_cast<size_t>(i)]));
  items = std::move(kept);
  return chosen;
}

}  // namespace syncopate::tasks
