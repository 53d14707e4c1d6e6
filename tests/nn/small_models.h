#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/nn/gpt/gpt.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/resnet/resnet.h"

namespace syncopate::test {

/// A small model of each family and head, of four blocks, with dropout, and a batch for it.
struct SmallModel {
  std::string name;
  std::function<std::unique_ptr<nn::Model>(uint64_t seed)> make;
  std::function<nn::Batch(uint64_t seed)> batch;  ///< padded; one example asks for nothing
};

template <typename Config>
Config small_config() {
  Config config;
  config.vocab_size = 40;
  config.hidden = 16;
  config.layers = 4;
  config.heads = 2;
  config.ffn = 24;
  config.max_positions = 12;
  config.initializer_range = 0.2;
  config.set_dropout(0.2);
  return config;
}

/// Of three texts of 9, 4 and 6 tokens.
inline nn::Batch small_texts(uint64_t seed) {
  at::manual_seed(seed);
  nn::Batch batch;
  const at::Tensor lengths = at::tensor({9, 4, 6}, at::kLong).unsqueeze(1);
  const at::Tensor mask = at::arange(9).unsqueeze(0).lt(lengths).to(at::kLong);
  batch.fields["attention_mask"] = mask;
  batch.fields["input_ids"] = at::randint(1, 40, {3, 9}, at::kLong) * mask;
  batch.ids = {5, 2, static_cast<int64_t>(seed) + 10};
  batch.real_tokens = 19;
  return batch;
}

template <typename Head>
std::function<std::unique_ptr<nn::Model>(uint64_t)> small_bert() {
  return [](uint64_t seed) {
    auto config = small_config<nn::BertConfig>();
    config.inner_dropout = 0.1;
    config.num_labels = 3;
    return nn::make_bert<Head>(config, seed);
  };
}

inline std::vector<SmallModel> small_models() {
  const auto classes = [](uint64_t seed) {
    nn::Batch batch = small_texts(seed);
    batch.fields["token_type_ids"] = at::randint(0, 2, {3, 9}, at::kLong);
    batch.fields["labels"] = at::tensor({2, int(nn::kNoLabel), 1}, at::kLong);
    return batch;
  };
  const auto masked = [](uint64_t seed) {
    nn::Batch batch = small_texts(seed);
    batch.fields["masked"] = at::tensor({2, 7, 10, 20, 22}, at::kLong);
    batch.fields["labels"] = at::tensor({4, 30, int(nn::kNoLabel), 17, 3}, at::kLong);
    return batch;
  };
  const auto places = [](uint64_t seed) {
    nn::Batch batch = small_texts(seed);
    batch.fields["starts"] = at::tensor({1, int(nn::kNoLabel), 4}, at::kLong);
    batch.fields["ends"] = at::tensor({6, int(nn::kNoLabel), 5}, at::kLong);
    return batch;
  };
  const auto next_words = [](uint64_t seed) {
    nn::Batch batch = small_texts(seed);
    batch.fields["labels"] =
        batch.at("input_ids").masked_fill(batch.at("attention_mask").eq(0), nn::kNoLabel);
    return batch;
  };
  const auto images = [](uint64_t seed) {
    at::manual_seed(seed);
    nn::Batch batch;
    batch.fields["images"] = at::randn({4, 3, 9, 7}) + 1;
    batch.fields["labels"] = at::tensor({0, 4, int(nn::kNoLabel), 2}, at::kLong);
    batch.ids = {0, 1, 2, 3};
    return batch;
  };
  const auto gpt = [](uint64_t seed) -> std::unique_ptr<nn::Model> {
    return nn::make_gpt(small_config<nn::GptConfig>(), seed);
  };
  const auto resnet = [](bool channels_last) {
    return [channels_last](uint64_t seed) -> std::unique_ptr<nn::Model> {
      nn::ResNetConfig config;
      config.widths = {6, 8};
      config.blocks = 2;
      config.channels = 3;
      config.num_labels = 5;
      auto model = nn::make_resnet(config, seed);
      model->set_channels_last(channels_last);
      return model;
    };
  };
  return {{"classifier", small_bert<nn::BertClassifier>(), classes},
          {"masked words", small_bert<nn::BertMaskedLm>(), masked},
          {"questions", small_bert<nn::BertQuestionAnswering>(), places},
          {"gpt", gpt, next_words},
          {"resnet", resnet(true), images},
          {"resnet, channels first", resnet(false), images}};
}

}  // namespace syncopate::test
