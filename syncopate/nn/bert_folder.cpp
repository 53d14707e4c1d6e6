#include "syncopate/nn/bert_folder.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/nn/weight_files.h"

namespace syncopate::nn {
namespace {

constexpr const char* kWords = "embeddings.word_embeddings.weight";
constexpr const char* kHead = "classifier.weight";
constexpr const char* kHeadBias = "classifier.bias";
constexpr const char* kPooler = "pooler.dense.weight";

/// Sets the number of labels; whether the folder's head serves.
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

void check_vocabulary(const WeightFiles& files, const BertConfig& config, const std::string& folder) {
  if (!files.contains(kWords)) return;
  const auto& shape = files.shape(kWords);
  if (shape.size() == 2 && shape[0] != config.vocab_size) {
    throw DataError(
        "{}: the weights have {} word embeddings but config.json says vocab_size {}; use the config.json of "
        "this model",
        folder, shape[0], config.vocab_size);
  }
}

/// Says which tensors were left out, apart from buffers that carry nothing.
void note_leftovers(const WeightFiles& files, const std::set<std::string>& used, const std::string& folder,
                    std::vector<std::string>& notes) {
  std::vector<std::string> left;
  for (const std::string& name : files.names()) {
    const bool buffer = name == "embeddings.position_ids" || name == "embeddings.token_type_ids";
    if (!used.contains(name) && !buffer && !name.starts_with("classifier.")) left.push_back(name);
  }
  if (left.empty()) return;
  const size_t shown = std::min<size_t>(left.size(), 3);
  notes.push_back(
      fmt::format("{} tensors of {} have no place in a classifier and were left out ({}{})", left.size(),
                  folder, fmt::join(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  left.size() > shown ? ", ..." : ""));
}

}  // namespace

LoadedBert load_bert(const std::filesystem::path& folder, std::optional<int64_t> num_labels, uint64_t seed,
                     const std::function<void(BertConfig&)>& settle) {
  const std::string where = folder.string();
  if (!std::filesystem::is_directory(folder)) {
    throw DataError(
        "there is no model folder {}; give a preset ({}) or a folder with config.json and model.safetensors",
        where, fmt::join(preset_names(), ", "));
  }
  LoadedBert loaded;
  BertConfig config = read_bert_config(folder / "config.json");
  const WeightFiles files(folder);
  check_vocabulary(files, config, where);
  const bool head = settle_labels(files, num_labels, where, config, loaded.notes);
  loaded.fresh_head = !head;
  if (settle) {
    const int64_t labels = config.num_labels;
    settle(config);
    check(config.num_labels == labels, "settling a model's configuration changed its number of labels");
  }
  const bool pooler = files.contains(kPooler);
  if (!pooler) loaded.notes.push_back(fmt::format("{} has no pooler: a fresh one is used", where));

  loaded.model = std::make_unique<BertClassifier>(config);
  std::set<std::string> used;
  for (const auto& [name, parameter] : loaded.model->parameters()) {
    const std::string plain = plain_weight_name(name);
    if (!head && plain.starts_with("classifier.")) continue;
    if (!pooler && plain.starts_with("pooler.")) continue;
    parameter.detach().copy_(files.read(plain, parameter.sizes()));
    used.insert(plain);
  }
  if (!head) loaded.model->initialize_head(seed);
  if (!pooler) loaded.model->initialize_pooler(seed);
  note_leftovers(files, used, where, loaded.notes);
  return loaded;
}

void save_bert(const std::filesystem::path& folder, const BertClassifier& model) {
  make_folder(folder);
  tensor::write_safetensors(folder / "model.safetensors", model.parameters(), {{"format", "pt"}});
  write_file_atomically(folder / "config.json", bert_config_to_json(model.config()).dump(2) + "\n");
}

}  // namespace syncopate::nn
