#include "syncopate/nn/bert/bert_folder.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/nn/model_folder.h"
#include "syncopate/nn/weight_files.h"

namespace syncopate::nn {
namespace {

constexpr const char* kWords = "embeddings.word_embeddings.weight";
constexpr const char* kHead = "classifier.weight";
constexpr const char* kHeadBias = "classifier.bias";
/// Sets a classifier's number of labels; whether the folder's head serves.
bool settle_labels(const WeightFiles& files, std::optional<int64_t> asked, const std::string& folder,
                   BertConfig& config, std::vector<std::string>& notes) {
  const bool has_head = files.contains(kHead) && files.contains(kHeadBias) && files.shape(kHead).size() == 2;
  const int64_t found = has_head ? files.shape(kHead)[0] : 0;
  if (!asked && has_head && found != config.num_labels && !config.labels.empty()) {
    throw DataError("{}: config.json names {} labels but the head has {}; use the config.json of this model",
                    folder, config.num_labels, found);
  }
  const int64_t wanted = asked.value_or(has_head ? found : config.num_labels);
  if (wanted != config.num_labels) config.labels.clear();
  config.num_labels = wanted;
  if (has_head && found == wanted) return true;
  notes.push_back(has_head
                      ? fmt::format("the head of {} has {} labels and {} are needed: a fresh one is used",
                                    folder, found, wanted)
                      : fmt::format("{} has no classification head: a fresh one is used", folder));
  return false;
}

/// Buffers and copies that carry nothing of their own.
bool carries_nothing(const std::string& name) {
  return name == "embeddings.position_ids" || name == "embeddings.token_type_ids" ||
         name.starts_with(
             "cls.predictions.decoder.");  // tied to the word embeddings and cls.predictions.bias
}

std::vector<std::string> leftovers(const WeightFiles& files, const std::set<std::string>& used) {
  std::vector<std::string> left;
  for (const std::string& name : files.names()) {
    if (!used.contains(name) && !carries_nothing(name)) left.push_back(name);
  }
  return left;
}

/// Fills the head from the folder as far as it has it. Whether it starts fresh.
bool load_head(const WeightFiles& files, Bert& model, uint64_t seed, bool usable, const std::string& folder,
               std::set<std::string>& used, std::vector<std::string>& notes) {
  model.initialize_head(seed);
  bool fresh = !usable;
  for (const auto& [name, parameter] : model.head_parameters()) {
    const std::string plain = plain_weight_name(name);
    used.insert(plain);
    const bool pooler = plain.starts_with("pooler.");
    if (!files.contains(plain)) {
      if (pooler && plain.ends_with("weight")) {
        notes.push_back(fmt::format("{} has no pooler: a fresh one is used", folder));
      } else if (!pooler && !fresh) {
        fresh = true;
        notes.push_back(fmt::format("{} has no head for this task: a fresh one is used", folder));
      }
    } else if (pooler || !fresh) {
      parameter.detach().copy_(files.read(plain, parameter.sizes()));
    }
  }
  return fresh;
}

}  // namespace

template <typename Head>
Loaded<Head> load_bert(const std::filesystem::path& folder, const LoadOptions& options) {
  const std::string where = folder.string();
  require_model_folder(folder, preset_names());
  Loaded<Head> loaded;
  BertConfig config = read_bert_config(folder / "config.json");
  const WeightFiles files(folder);
  files.require_words(kWords, config.vocab_size);
  bool usable = !options.fresh_head;
  if constexpr (std::is_same_v<Head, BertClassifier>) {
    if (options.fresh_head) {
      config.num_labels = options.num_labels.value_or(config.num_labels);
      config.labels.clear();
    } else {
      usable = settle_labels(files, options.num_labels, where, config, loaded.notes);
    }
  }
  if (options.settle) {
    const int64_t labels = config.num_labels;
    options.settle(config);
    check(config.num_labels == labels, "settling a model's configuration changed its number of labels");
  }
  loaded.model = std::make_unique<Head>(config);
  std::set<std::string> used;
  loaded.fresh_head = load_head(files, *loaded.model, options.seed, usable, where, used, loaded.notes);
  for (const auto& [name, parameter] : loaded.model->parameters()) {
    const std::string plain = plain_weight_name(name);
    if (!used.insert(plain).second) continue;  // the head's
    parameter.detach().copy_(files.read(plain, parameter.sizes()));
  }
  note_leftovers(leftovers(files, used), where, "this model", loaded.notes);
  return loaded;
}

template Loaded<BertClassifier> load_bert(const std::filesystem::path&, const LoadOptions&);
template Loaded<BertMaskedLm> load_bert(const std::filesystem::path&, const LoadOptions&);
template Loaded<BertQuestionAnswering> load_bert(const std::filesystem::path&, const LoadOptions&);

void save_bert(const std::filesystem::path& folder, const Bert& model) {
  write_model_folder(folder, model.parameters(), bert_config_to_json(model.config(), model.architecture()));
}

}  // namespace syncopate::nn
