#include "syncopate/run/build.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/rng.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/share.h"
#include "syncopate/data/task.h"
#include "syncopate/data/text_dataset.h"
#include "syncopate/data/vocabulary.h"
#include "syncopate/nn/bert_folder.h"
#include "syncopate/parallel/all_reduce.h"
#include "syncopate/parallel/every_step.h"
#include "syncopate/parallel/gather_scatter.h"
#include "syncopate/parallel/overlapped.h"

namespace syncopate::run {
namespace {

constexpr const char* kTokenizerConfig = "tokenizer_config.json";

/// A seeded subset in the file's order, the same for every strategy and number of workers.
void keep_subset(std::vector<data::TextExample>& examples, int64_t limit, int64_t seed) {
  const auto size = static_cast<int64_t>(examples.size());
  if (limit == 0 || limit >= size) return;
  std::vector<int64_t> chosen = permutation(size, mix_key(static_cast<uint64_t>(seed), 0x5ab5e7));
  chosen.resize(static_cast<size_t>(limit));
  std::sort(chosen.begin(), chosen.end());
  std::vector<data::TextExample> kept;
  for (const int64_t i : chosen) kept.push_back(std::move(examples[static_cast<size_t>(i)]));
  examples = std::move(kept);
}

std::unique_ptr<data::WordPiece> build_vocabulary(const RunSpec& spec, const data::TextTask& task,
                                                  comm::Group& group) {
  std::string text;
  if (group.rank() == 0) {
    const auto words = data::train_vocabulary(data::texts_of(task.train), {.size = spec.model.vocab_size});
    text = fmt::format("{}", fmt::join(words, "\n"));
  }
  text = comm::share_text(group, text, 0);
  std::vector<std::string> words;
  for (const std::string_view word : split(text, '\n')) words.emplace_back(word);
  return std::make_unique<data::WordPiece>(std::move(words), data::rules_for(true));
}

void require_model(const std::string& name) {
  if (nn::is_preset(name) || std::filesystem::is_directory(name)) return;
  const auto near = nearest(name, nn::preset_names());
  throw ConfigError(
      "there is no model \"{}\": neither a preset nor a folder{}", name,
      near ? fmt::format("; did you mean \"{}\"?", *near)
           : fmt::format("; give a Hugging Face folder or one of: {}", fmt::join(nn::preset_names(), ", ")));
}

/// Tables are padded to a round number of rows at times; more rows than that, or fewer, are another
/// vocabulary's.
void require_vocabulary_fits(const data::WordPiece& tokenizer, const nn::BertClassifier& model,
                             const std::string& folder, const std::string& vocab) {
  constexpr int64_t kMostPadding = 128;
  const int64_t surplus = model.config().vocab_size - tokenizer.size();
  if (surplus == 0 || (surplus > 0 && surplus < kMostPadding && model.config().vocab_size % 8 == 0)) return;
  throw DataError(
      "the vocabulary {} has {} words but the model {} has embeddings for {}; use the vocabulary it was "
      "trained with",
      vocab, tokenizer.size(), folder, model.config().vocab_size);
}

/// A folder may name its classes in another order than the task: puts the head's rows into the task's.
void align_labels(nn::BertClassifier& model, const std::vector<std::string>& labels) {
  const std::vector<std::string>& names = model.config().labels;
  if (names == labels || !std::is_permutation(names.begin(), names.end(), labels.begin(), labels.end()))
    return;
  std::vector<int64_t> order;
  for (const std::string& label : labels)
    order.push_back(std::find(names.begin(), names.end(), label) - names.begin());
  const at::Tensor rows = at::tensor(order, at::kLong);
  for (const auto& [name, parameter] : model.parameters()) {
    if (name.starts_with("classifier.")) parameter.detach().copy_(parameter.detach().index_select(0, rows));
  }
  model.name_labels(labels);
}

std::string vocabulary_of(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "vocab.txt";
  if (!std::filesystem::exists(path)) {
    throw DataError("the model folder {} has no vocab.txt; put it there or name one with --vocab", folder);
  }
  return path.string();
}

void require_length_fits(int64_t max_length, const nn::BertConfig& config, const std::string& model) {
  if (max_length <= config.max_positions) return;
  throw ConfigError("--max-length {} is more than the {} positions of {}; make it smaller", max_length,
                    config.max_positions, model);
}

/// The length a model was trained with, as its folder says; 128 where it does not.
int64_t trained_length(const std::string& folder, const nn::BertConfig& config) {
  constexpr int64_t kUsual = 128;
  const std::filesystem::path path = std::filesystem::path(folder) / kTokenizerConfig;
  if (!std::filesystem::exists(path)) return std::min(kUsual, config.max_positions);
  const auto json = nlohmann::json::parse(read_file(path, "tokenizer settings"), nullptr, false);
  const auto length = json.is_object() ? json.find("model_max_length") : json.end();
  if (!json.is_object() || length == json.end() || !length->is_number_integer())
    return std::min(kUsual, config.max_positions);
  return std::clamp<int64_t>(length->get<int64_t>(), 4, config.max_positions);
}

}  // namespace

void save_model(const std::filesystem::path& folder, const nn::BertClassifier& model,
                const data::WordPiece& tokenizer, int64_t max_length) {
  const std::filesystem::path fresh = folder.string() + ".writing";
  std::filesystem::remove_all(fresh);
  try {
    nn::save_bert(fresh, model);
    tokenizer.save(fresh);
    auto json = nlohmann::ordered_json::parse(read_file(fresh / kTokenizerConfig, "tokenizer settings"));
    json["model_max_length"] = max_length;
    write_file_atomically(fresh / kTokenizerConfig, json.dump(2) + "\n");
    std::filesystem::remove_all(folder);
    std::filesystem::rename(fresh, folder);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"single", "gather-scatter", "all-reduce", "ddp"};
  return names;
}

void require_strategy(const std::string& name) {
  const auto& names = strategy_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("unknown strategy \"{}\"{}", name, suggestion(name, names));
}

std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec::Strategy& spec, comm::Group& group) {
  require_strategy(spec.name);
  if (spec.name == "single") return std::make_unique<parallel::Single>();
  if (spec.name == "gather-scatter") {
    return std::make_unique<parallel::EveryStep>(group, std::make_unique<parallel::GatherScatter>(group),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  auto all_reduce = std::make_unique<parallel::AllReduce>(group);
  if (spec.name == "all-reduce") {
    return std::make_unique<parallel::EveryStep>(group, std::move(all_reduce),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  return std::make_unique<parallel::Overlapped>(
      group, std::move(all_reduce),
      parallel::Overlapped::Options{.bucket_mib = spec.bucket_mib,
                                    .first_bucket_mib = spec.first_bucket_mib,
                                    .sparse_rows = spec.sparse_rows,
                                    .overlap = spec.overlap});
}

std::unique_ptr<optim::Optimizer> make_optimizer(const RunSpec::Optim& spec,
                                                 const tensor::FlatParams& params) {
  return optim::make_optimizer({.kind = spec.name,
                                .weight_decay = spec.weight_decay,
                                .beta1 = spec.beta1,
                                .beta2 = spec.beta2,
                                .eps = spec.eps,
                                .momentum = spec.momentum},
                               params);
}

optim::Schedule make_schedule(const RunSpec::Optim& spec, int64_t steps) {
  return {{.kind = spec.schedule, .lr = spec.lr, .warmup = spec.warmup}, steps};
}

Materials make_materials(const RunSpec& spec, comm::Group& group) {
  require_model(spec.model.name);
  data::TextTask task =
      data::load_task({.task = spec.task.name, .path = spec.task.data}, data::Purpose::kTrain);
  keep_subset(task.train, spec.task.limit, spec.train.seed);
  if (spec.task.test_limit > 0 && spec.task.test_limit < static_cast<int64_t>(task.test.size())) {
    task.test.resize(static_cast<size_t>(spec.task.test_limit));
  }
  Materials made;
  const bool preset = nn::is_preset(spec.model.name);
  const auto seed = mix_key(static_cast<uint64_t>(spec.train.seed), 0x1417);
  if (!spec.model.vocab.empty() || !preset) {
    const std::string vocab = spec.model.vocab.empty() ? vocabulary_of(spec.model.name) : spec.model.vocab;
    made.tokenizer = std::make_unique<data::WordPiece>(data::WordPiece::load(vocab));
  } else {
    made.tokenizer = build_vocabulary(spec, task, group);
  }
  const auto labels = static_cast<int64_t>(task.labels.size());
  nn::BertConfig config;
  if (preset) {
    config = nn::preset(spec.model.name);
    config.vocab_size = made.tokenizer->size();
    config.pad_token = made.tokenizer->pad();
  } else {
    config = nn::read_bert_config(std::filesystem::path(spec.model.name) / "config.json");
  }
  require_length_fits(spec.task.max_length, config, spec.model.name);
  if (preset) {
    config.num_labels = labels;
    made.model = nn::make_bert(config, seed);
  } else {
    nn::LoadedBert loaded = nn::load_bert(spec.model.name, labels, seed);
    made.model = std::move(loaded.model);
    if (!loaded.fresh_head) align_labels(*made.model, task.labels);
    made.notes = std::move(loaded.notes);
    require_vocabulary_fits(*made.tokenizer, *made.model, spec.model.name,
                            spec.model.vocab.empty() ? "in it" : spec.model.vocab);
  }
  made.model->set_dropout(spec.model.dropout, spec.model.inner_dropout);
  made.model->name_labels(task.labels);
  made.train = std::make_shared<data::TextDataset>(task.train, *made.tokenizer, spec.task.max_length);
  made.test = std::make_shared<data::TextDataset>(task.test, *made.tokenizer, spec.task.max_length);
  return made;
}

Scoring make_scoring(const std::string& task_name, const std::string& data_path,
                     const std::string& model_folder, int64_t max_length, data::Purpose purpose) {
  if (!std::filesystem::is_directory(model_folder)) {
    throw DataError("there is no model folder {}; give the model/ folder of a run or a Hugging Face folder",
                    model_folder);
  }
  const data::TextTask task = data::load_task({.task = task_name, .path = data_path}, purpose);
  Scoring made;
  made.tokenizer = std::make_unique<data::WordPiece>(data::WordPiece::load(vocabulary_of(model_folder)));
  nn::LoadedBert loaded = nn::load_bert(model_folder, std::nullopt, 0);
  if (loaded.fresh_head) {
    throw DataError("the model in {} has no classification head; train it on the task first", model_folder);
  }
  made.model = std::move(loaded.model);
  if (made.model->config().num_labels != static_cast<int64_t>(task.labels.size())) {
    throw DataError(
        "the model in {} tells {} classes apart but the task {} has {}; use a model trained on this task",
        model_folder, made.model->config().num_labels, task_name, task.labels.size());
  }
  align_labels(*made.model, task.labels);
  require_vocabulary_fits(*made.tokenizer, *made.model, model_folder, "in it");
  if (max_length == 0) max_length = trained_length(model_folder, made.model->config());
  require_length_fits(max_length, made.model->config(), model_folder);
  made.labels = task.labels;
  made.test = std::make_shared<data::TextDataset>(task.test, *made.tokenizer, max_length);
  return made;
}

}  // namespace syncopate::run
