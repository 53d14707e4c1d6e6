#include "syncopate/nn/bert/bert_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/nn/weight_files.h"
#include "syncopate/tensor/safetensors.h"
#include "tests/support/support.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;
using test::TempDir;

BertConfig tiny_bert() {
  BertConfig config;
  config.vocab_size = 30;
  config.hidden = 8;
  config.layers = 2;
  config.heads = 2;
  config.ffn = 12;
  config.max_positions = 10;
  config.num_labels = 3;
  return config;
}

std::vector<tensor::NamedTensor> weights(const BertClassifier& model) {
  std::vector<tensor::NamedTensor> copy;
  for (const auto& [name, parameter] : model.parameters()) copy.push_back({name, parameter.detach().clone()});
  return copy;
}

/// A folder with the small model after `change` was done to each of its tensors (an empty name leaves one
/// out).
class BertFolder {
 public:
  explicit BertFolder(const std::function<void(tensor::NamedTensor&)>& change = [](tensor::NamedTensor&) {}) {
    original = make_bert(tiny_bert(), 5);
    std::vector<tensor::NamedTensor> kept;
    for (tensor::NamedTensor each : weights(*original)) {
      change(each);
      if (!each.name.empty()) kept.push_back(each);
    }
    tensor::write_safetensors(path() / "model.safetensors", kept);
    write_config(bert_config_to_json(tiny_bert()));
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  void write_config(const json& config) const { test::write_text(path() / "config.json", config.dump()); }

  std::unique_ptr<BertClassifier> original;

 private:
  TempDir folder_;
};

/// How many tensors differ.
int differences(const BertClassifier& a, const BertClassifier& b) {
  int count = 0;
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    count += at::equal(a.parameters()[i].tensor, b.parameters()[i].tensor) ? 0 : 1;
  }
  return count;
}

std::string fault_of(const std::filesystem::path& folder, std::optional<int64_t> labels = std::nullopt) {
  try {
    load_bert<BertClassifier>(folder, {.num_labels = labels, .seed = 1});
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

void expect_fault(const BertFolder& folder, const std::string& why) {
  const std::string fault = fault_of(folder.path());
  EXPECT_NE(fault.find(why), std::string::npos) << "expected \"" << why << "\" in: " << fault;
}

TEST(BertFolder, SaveAndLoadGiveTheSameBits) {
  const TempDir folder;
  BertConfig config = tiny_bert();
  config.labels = {"a", "b", "c"};
  const auto model = make_bert(config, 9);
  save_bert(folder / "deep/model", *model);
  const LoadedBert loaded = load_bert<BertClassifier>(folder / "deep/model", {.seed = 1});
  EXPECT_EQ(differences(*model, *loaded.model), 0);
  EXPECT_EQ(loaded.model->config(), config);
  EXPECT_FALSE(loaded.fresh_head);
  EXPECT_TRUE(loaded.notes.empty());
  const auto first = test::read_text(folder / "deep/model/model.safetensors");
  save_bert(folder / "again", *loaded.model);
  EXPECT_EQ(test::read_text(folder / "again/model.safetensors"), first);
}

TEST(BertFolder, AcceptsNameVariants) {
  const BertFolder bare([](tensor::NamedTensor& each) {
    if (each.name.starts_with("bert.")) each.name.erase(0, 5);
  });
  EXPECT_EQ(differences(*load_bert<BertClassifier>(bare.path(), {.seed = 1}).model, *bare.original), 0);
  const BertFolder old([](tensor::NamedTensor& each) {
    const auto at = each.name.find("LayerNorm.");
    if (at == std::string::npos) return;
    each.name =
        each.name.substr(0, at) + (each.name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta");
  });
  EXPECT_EQ(differences(*load_bert<BertClassifier>(old.path(), {.seed = 1}).model, *old.original), 0);
  EXPECT_EQ(plain_weight_name("module.bert.embeddings.LayerNorm.gamma"), "embeddings.LayerNorm.weight");
}

TEST(BertFolder, ConvertsOtherFloatTypesToFp32) {
  for (const auto type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    const BertFolder folder([&](tensor::NamedTensor& each) { each.tensor = each.tensor.to(type); });
    const LoadedBert loaded = load_bert<BertClassifier>(folder.path(), {.seed = 1});
    for (size_t i = 0; i < loaded.model->parameters().size(); ++i) {
      const at::Tensor value = loaded.model->parameters()[i].tensor;
      EXPECT_EQ(value.scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(value, folder.original->parameters()[i].tensor.to(type).to(at::kFloat)));
    }
  }
}

TEST(BertFolder, IgnoresBuffersAndOtherHeads) {
  const BertFolder folder;
  auto all = weights(*folder.original);
  all.push_back({"bert.embeddings.position_ids", at::arange(10).unsqueeze(0)});
  tensor::write_safetensors(folder.path() / "model.safetensors", all);
  EXPECT_TRUE(load_bert<BertClassifier>(folder.path(), {.seed = 1}).notes.empty());
  all.push_back({"cls.predictions.bias", at::zeros({30})});
  all.push_back({"cls.seq_relationship.weight", at::zeros({2, 8})});
  tensor::write_safetensors(folder.path() / "model.safetensors", all);
  const LoadedBert loaded = load_bert<BertClassifier>(folder.path(), {.seed = 1});
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_NE(loaded.notes[0].find("cls.predictions.bias"), std::string::npos) << loaded.notes[0];
  EXPECT_EQ(differences(*loaded.model, *folder.original), 0);
}

TEST(BertFolder, MissingHeadIsInitialised) {
  const BertFolder folder([](tensor::NamedTensor& each) {
    if (each.name.starts_with("classifier.") || each.name.starts_with("bert.pooler.")) each.name.clear();
  });
  const LoadedBert loaded = load_bert<BertClassifier>(folder.path(), {.num_labels = 7, .seed = 1}),
                   same = load_bert<BertClassifier>(folder.path(), {.num_labels = 7, .seed = 1}),
                   other = load_bert<BertClassifier>(folder.path(), {.num_labels = 7, .seed = 2});
  EXPECT_TRUE(loaded.fresh_head);
  EXPECT_EQ(loaded.notes.size(), 2u);
  EXPECT_EQ(loaded.model->config().num_labels, 7);
  EXPECT_EQ(differences(*loaded.model, *same.model), 0);
  EXPECT_EQ(differences(*loaded.model, *other.model), 2);  // the head's and the pooler's matrices
}

TEST(BertFolder, DifferentLabelsGetAFreshHead) {
  const BertFolder folder;
  const LoadedBert kept = load_bert<BertClassifier>(folder.path(), {.num_labels = 3, .seed = 1}),
                   fresh = load_bert<BertClassifier>(folder.path(), {.num_labels = 5, .seed = 1});
  EXPECT_FALSE(kept.fresh_head);
  EXPECT_TRUE(fresh.fresh_head);
  ASSERT_EQ(fresh.notes.size(), 1u);
  EXPECT_NE(fresh.notes[0].find("3 labels and 5 are needed"), std::string::npos) << fresh.notes[0];
  EXPECT_EQ(fresh.model->parameters().back().tensor.size(0), 5);
}

TEST(BertFolder, SettleChangesDropoutAndNames) {
  const BertFolder folder;
  const LoadedBert loaded =
      load_bert<BertClassifier>(folder.path(), {.num_labels = 3, .seed = 1, .settle = [](BertConfig& config) {
                                                  config.set_dropout(0);
                                                  config.labels = {"x", "y", "z"};
                                                }});
  EXPECT_EQ(loaded.model->config().hidden_dropout, 0);
  EXPECT_EQ(loaded.model->config().labels[2], "z");
  EXPECT_EQ(differences(*loaded.model, *folder.original), 0);
}

TEST(BertFolder, LoadsShards) {
  const BertFolder folder;
  const auto all = weights(*folder.original);
  const size_t half = all.size() / 2;
  tensor::write_safetensors(folder.path() / "model-1.safetensors",
                            {all.begin(), all.begin() + static_cast<long>(half)});
  tensor::write_safetensors(folder.path() / "model-2.safetensors",
                            {all.begin() + static_cast<long>(half), all.end()});
  std::filesystem::remove(folder.path() / "model.safetensors");
  json index;
  for (size_t i = 0; i < all.size(); ++i) {
    index["weight_map"][all[i].name] = i < half ? "model-1.safetensors" : "model-2.safetensors";
  }
  const auto write_index = [&](const json& value) {
    test::write_text(folder.path() / "model.safetensors.index.json", value.dump());
  };
  write_index(index);
  EXPECT_EQ(differences(*load_bert<BertClassifier>(folder.path(), {.seed = 1}).model, *folder.original), 0);

  json bad = index;
  bad["weight_map"][all[0].name] = "../model-1.safetensors";
  write_index(bad);
  expect_fault(folder, "plain name");
  bad["weight_map"][all[0].name] = "model-2.safetensors";
  write_index(bad);
  expect_fault(folder, "does not have it");
  bad["weight_map"][all[0].name] = "model-3.safetensors";
  write_index(bad);
  expect_fault(folder, "model-3.safetensors");
  write_index(json::array());
  expect_fault(folder, "weight_map");
}

TEST(BertFolder, RejectsInvalidFolders) {
  EXPECT_NE(fault_of("/nowhere/at/all").find("bert-mini"), std::string::npos);
  const TempDir empty;
  EXPECT_NE(fault_of(empty.path()).find("config.json"), std::string::npos);

  const BertFolder missing([](tensor::NamedTensor& each) {
    if (each.name == "bert.encoder.layer.1.output.dense.weight") each.name.clear();
  });
  expect_fault(missing, "encoder.layer.1.output.dense.weight");
  const BertFolder misshapen([](tensor::NamedTensor& each) {
    if (each.name == "bert.encoder.layer.1.output.dense.weight") each.tensor = at::zeros({8, 13});
  });
  expect_fault(misshapen, "[8, 13] but config.json makes it [8, 12]");
  const BertFolder whole_numbers([](tensor::NamedTensor& each) {
    if (each.name == "bert.pooler.dense.bias") each.tensor = at::zeros({8}, at::kLong);
  });
  expect_fault(whole_numbers, "floating-point");

  const BertFolder folder;
  json config = bert_config_to_json(tiny_bert());
  config["vocab_size"] = 31;
  folder.write_config(config);
  expect_fault(folder, "30 word embeddings but config.json says vocab_size 31");
  config = bert_config_to_json(tiny_bert());
  config["id2label"] = {{"0", "no"}, {"1", "yes"}};
  folder.write_config(config);
  expect_fault(folder, "names 2 labels but the head has 3");
  folder.write_config(bert_config_to_json(tiny_bert()));
  auto twice = weights(*folder.original);
  twice.push_back({"pooler.dense.bias", at::zeros({8})});
  tensor::write_safetensors(folder.path() / "model.safetensors", twice);
  expect_fault(folder, "the same tensor");
  test::write_text(folder.path() / "model.safetensors", "short");
  expect_fault(folder, "model.safetensors");
  std::filesystem::remove(folder.path() / "model.safetensors");
  expect_fault(folder, "no model.safetensors");
  test::write_text(folder.path() / "pytorch_model.bin", "x");
  expect_fault(folder, "pytorch_model.bin, which is not read; convert it: python3 -c \"import torch");
}

}  // namespace
}  // namespace syncopate::nn
