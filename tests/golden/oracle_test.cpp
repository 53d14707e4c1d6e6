#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "syncopate/base/file.h"
#include "syncopate/nn/bert/bert_folder.h"
#include "syncopate/tensor/safetensors.h"
#include "syncopate/text/wordpiece.h"
#include "tests/golden/golden_support.h"
#include "tests/support/support.h"

// A small BertForSequenceClassification that transformers itself made and trained for ten steps.
namespace syncopate::test {
namespace {

constexpr double kOracleLossTolerance = 5e-6;

struct Trace {
  std::vector<tensor::Batch> batches;
  std::vector<double> losses;
  at::Tensor first_logits;
};

Trace read_trace(const std::filesystem::path& folder) {
  const auto json = nlohmann::json::parse(read_file(folder / "trace.json", "trace"));
  const auto tokenizer = text::WordPiece::load(folder / "vocab.txt");
  Trace trace;
  std::vector<Example> examples;
  for (const auto& row : json["rows"]) {
    const auto encoding = tokenizer.encode(row[0].get<std::string>(), row[1].get<std::string>(), 128);
    examples.push_back(
        {{encoding.ids.begin(), encoding.ids.end()}, {encoding.types.begin(), encoding.types.end()}, row[2]});
    if (examples.size() == 8) {
      trace.batches.push_back(batch_of(examples));
      examples.clear();
    }
  }
  trace.losses = json["losses"].get<std::vector<double>>();
  const auto logits = json["first_logits"].get<std::vector<std::vector<float>>>();
  for (const auto& row : logits) {
    trace.first_logits = trace.first_logits.defined()
                             ? at::cat({trace.first_logits, at::tensor(row).unsqueeze(0)})
                             : at::tensor(row).unsqueeze(0);
  }
  return trace;
}

class Oracle : public testing::Test {
 protected:
  Oracle() { at::set_num_threads(1); }  // tensors this small only wait for other threads

  /// The worst relative error of the ten losses after some changes to what is trained and how.
  static double loss_error(const std::filesystem::path& folder,
                           const std::function<void(nn::BertConfig&)>& change_config,
                           const std::function<void(tensor::Batch&)>& change_batch,
                           const std::function<void(PlainAdamW&)>& change_adam, bool plain = false) {
    Trace trace = read_trace(folder);
    const auto loaded = nn::load_bert<nn::BertClassifier>(folder, {.num_labels = 2, .seed = 0});
    nn::BertConfig config = loaded.model->config();
    change_config(config);
    nn::BertClassifier model(config);
    model.set_plain(plain);
    for (size_t i = 0; i < model.parameters().size(); ++i) {
      model.parameters()[i].tensor.detach().copy_(loaded.model->parameters()[i].tensor.detach());
    }
    for (auto& batch : trace.batches) change_batch(batch);
    PlainAdamW adam;
    change_adam(adam);
    return worst_relative(train(model, trace.batches, adam), trace.losses);
  }
};

const auto same_config = [](nn::BertConfig&) {};
const auto same_batch = [](tensor::Batch&) {};
const auto same_adam = [](PlainAdamW&) {};

TEST_F(Oracle, LogitsOfEveryFolderVariant) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles/tiny-bert-cls");
  const Trace trace = read_trace(oracles);
  for (const auto& folder :
       {oracles, oracles.parent_path() / "variants/sharded", oracles.parent_path() / "variants/gamma-beta"}) {
    const auto loaded = nn::load_bert<nn::BertClassifier>(folder, {.seed = 0});
    EXPECT_TRUE(loaded.notes.empty()) << loaded.notes.front();
    EXPECT_LT(worst_of_largest(loaded.model->forward(trace.batches[0]), trace.first_logits), 1e-5) << folder;
    loaded.model->set_whole_last_layer(true);
    EXPECT_LT(worst_of_largest(loaded.model->forward(trace.batches[0]), trace.first_logits), 1e-5) << folder;
  }
}

TEST_F(Oracle, EveryGradientOfTheFirstStep) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles/tiny-bert-cls");
  const Trace trace = read_trace(oracles);
  const tensor::SafetensorsFile expected(oracles / "first_gradients.safetensors");
  for (const bool plain : {false, true}) {
    for (const bool whole : {false, true}) {
      const auto loaded = nn::load_bert<nn::BertClassifier>(oracles, {.seed = 0});
      loaded.model->set_plain(plain);
      loaded.model->set_whole_last_layer(whole);
      const auto found = gradients(*loaded.model, trace.batches[0]);
      EXPECT_EQ(found.size(), expected.tensors().size());
      for (const auto& [name, gradient] : found) {
        const at::Tensor right = expected.read(name);
        if (name.ends_with("key.bias")) {  // zero but for rounding, theirs as ours
          EXPECT_LT(gradient.abs().max().item<double>(), 1e-7) << name;
          continue;
        }
        const double largest = right.abs().max().item<double>();
        EXPECT_LT((gradient - right).abs().max().item<double>(), 1e-5 * largest + 1e-9)
            << name << " plain " << plain;
      }
    }
  }
}

TEST_F(Oracle, TenLosses) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles/tiny-bert-cls");
  EXPECT_LT(loss_error(oracles, same_config, same_batch, same_adam), kOracleLossTolerance);
  EXPECT_LT(loss_error(oracles, same_config, same_batch, same_adam, true), kOracleLossTolerance);
}

TEST_F(Oracle, FoilsOfTheModelMissTheLosses) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles/tiny-bert-cls");
  const auto tanh = [](nn::BertConfig& config) { config.activation = nn::Activation::kGeluTanh; };
  EXPECT_GT(loss_error(oracles, tanh, same_batch, same_adam), 10 * kOracleLossTolerance);
  const auto eps = [](nn::BertConfig& config) { config.layer_norm_eps = 1e-5; };
  EXPECT_GT(loss_error(oracles, eps, same_batch, same_adam), kOracleLossTolerance);
  const auto no_mask = [](tensor::Batch& batch) { batch.fields["attention_mask"].fill_(1); };
  EXPECT_GT(loss_error(oracles, same_config, no_mask, same_adam), 1e-2);
  const auto no_types = [](tensor::Batch& batch) { batch.fields["token_type_ids"].zero_(); };
  EXPECT_GT(loss_error(oracles, same_config, no_types, same_adam), 1e-2);
}

TEST_F(Oracle, FoilsOfTheOptimizerMissTheLosses) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles/tiny-bert-cls");
  const auto no_decay = [](PlainAdamW& adam) { adam.weight_decay = 0; };
  EXPECT_GT(loss_error(oracles, same_config, same_batch, no_decay), 10 * kOracleLossTolerance);
  const auto all_decay = [](PlainAdamW& adam) { adam.decay_everything = true; };
  EXPECT_GT(loss_error(oracles, same_config, same_batch, all_decay), 10 * kOracleLossTolerance);
  const auto beta2 = [](PlainAdamW& adam) { adam.beta2 = 0.99; };
  EXPECT_GT(loss_error(oracles, same_config, same_batch, beta2), 10 * kOracleLossTolerance);
  const auto eps = [](PlainAdamW& adam) { adam.eps = 1e-6; };
  EXPECT_GT(loss_error(oracles, same_config, same_batch, eps), 10 * kOracleLossTolerance);
}

TEST_F(Oracle, WithoutScoreScalingTheLogitsDiffer) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles/tiny-bert-cls");
  const Trace trace = read_trace(oracles);
  const auto loaded = nn::load_bert<nn::BertClassifier>(oracles, {.seed = 0});
  const double root = std::sqrt(static_cast<double>(loaded.model->config().head_width()));
  for (const auto& [name, parameter] : loaded.model->parameters()) {
    if (name.find(".query.") != std::string::npos) parameter.detach().mul_(root);
  }
  EXPECT_GT(worst_of_largest(loaded.model->forward(trace.batches[0]), trace.first_logits), 1e-2);
}

TEST_F(Oracle, FoldersWithOtherHeadsLoadWithANote) {
  SYNCOPATE_NEED_SHARED(oracles, "oracles");
  for (const char* name : {"mlm", "qa"}) {
    const auto loaded = nn::load_bert<nn::BertClassifier>(oracles / name, {.num_labels = 4, .seed = 0});
    EXPECT_TRUE(loaded.fresh_head);
    EXPECT_EQ(loaded.notes.size(), 3u) << name;  // no head, no pooler, tensors left out
    const tensor::Batch batch = batch_of({{{2, 7, 9, 3}, {0, 0, 0, 0}, 0}});
    EXPECT_TRUE(loaded.model->forward(batch).isfinite().all().item<bool>());
  }
}

TEST_F(Oracle, PretrainedHiddenStates) {
  SYNCOPATE_NEED_SHARED(hidden_file, "oracles/minilm/hidden.json");
  SYNCOPATE_NEED_SHARED(folder, "data/minilm-l6");
  const auto loaded = nn::load_bert<nn::BertClassifier>(folder, {.num_labels = 2, .seed = 0});
  EXPECT_EQ(loaded.notes.size(), 1u);  // it has no head
  loaded.model->set_whole_last_layer(true);
  for (const auto& text : nlohmann::json::parse(read_file(hidden_file, "hidden states"))) {
    const auto ids = text["ids"].get<std::vector<int64_t>>();
    const tensor::Batch batch = batch_of({{ids, std::vector<int64_t>(ids.size(), 0), 0}});
    const at::Tensor hidden = loaded.model->forward({}, batch, {0, loaded.model->depth() - 1});
    const at::Tensor cls = at::tensor(text["cls_first_16"].get<std::vector<float>>());
    EXPECT_LT(worst_of_largest(hidden[0][0].narrow(0, 0, 16), cls), 1e-5);
    const at::Tensor norms = at::tensor(text["hidden_norms"].get<std::vector<float>>());
    EXPECT_LT(worst_of_largest(hidden[0].norm(2, {1}), norms), 1e-5);
    const at::Tensor pooled = at::tensor(text["pooler_first_16"].get<std::vector<float>>());
    EXPECT_LT(worst_of_largest(loaded.model->pool(hidden)[0].narrow(0, 0, 16), pooled), 1e-5);
  }
}

}  // namespace
}  // namespace syncopate::test
