#include "syncopate/nn/bert/bert_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

TEST(BertConfig, PresetsHaveTheirSizes) {
  EXPECT_EQ(preset_names(),
            (std::vector<std::string>{"bert-tiny", "bert-mini", "bert-small", "bert-base", "bert-large"}));
  const BertConfig mini = preset("bert-mini");
  EXPECT_EQ(mini.layers, 4);
  EXPECT_EQ(mini.hidden, 256);
  EXPECT_EQ(mini.heads, 4);
  EXPECT_EQ(mini.ffn, 1024);
  EXPECT_EQ(mini.vocab_size, 30522);
  for (const std::string& name : preset_names()) {
    EXPECT_TRUE(is_preset(name));
    EXPECT_NO_THROW(preset(name).validate());
    EXPECT_EQ(preset(name).head_width(), 64);
  }
  EXPECT_FALSE(is_preset("bert"));
}

TEST(BertConfig, MisspeltPresetGetsASuggestion) {
  try {
    preset("bert-minni");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"bert-mini\""), std::string::npos)
        << error.what();
  }
}

TEST(BertConfig, RoundTripsThroughJson) {
  BertConfig config = preset("bert-small");
  config.vocab_size = 1234;
  config.num_labels = 3;
  config.labels = {"no", "maybe", "yes"};
  config.classifier_dropout = 0.3;
  config.inner_dropout = 0.05;
  config.activation = Activation::kGeluTanh;
  EXPECT_EQ(parse_bert_config(bert_config_to_json(config), "here"), config);
  const BertConfig nameless = preset("bert-tiny");
  EXPECT_EQ(parse_bert_config(bert_config_to_json(nameless), "here"), nameless);
  const json written = bert_config_to_json(config);
  EXPECT_EQ(written["label2id"]["maybe"], 1);
  EXPECT_EQ(written["model_type"], "bert");
  EXPECT_EQ(written["architectures"][0], "BertForSequenceClassification");
}

TEST(BertConfig, RejectsInvalidConfigs) {
  const json good = bert_config_to_json(preset("bert-tiny"));
  const auto rejects = [&](const char* key, const json& value, const std::string& why) {
    json bad = good;
    bad[key] = value;
    try {
      parse_bert_config(bad, "x/config.json");
      ADD_FAILURE() << key;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("x/config.json"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  rejects("hidden_size", "wide", "hidden_size");
  rejects("hidden_size", nullptr, "hidden_size");
  rejects("hidden_size", 129, "multiple");
  rejects("hidden_size", 0, "1 or more");
  rejects("vocab_size", -5, "vocab_size");
  rejects("num_attention_heads", 2.5, "whole number");
  rejects("num_hidden_layers", 1e300, "whole number");
  rejects("intermediate_size", 4611686018427387904, "intermediate_size");
  rejects("hidden_act", "relu", "relu");
  rejects("hidden_act", 3, "hidden_act");
  rejects("model_type", "gpt2", "gpt2");
  rejects("model_type", "roberta",
          "x/config.json: not supported: model_type roberta; this task takes a model of model_type bert");
  rejects("position_embedding_type", "relative_key", "relative_key");
  rejects("hidden_dropout_prob", 1.0, "below 1");
  rejects("attention_probs_dropout_prob", -0.1, "at least 0");
  rejects("layer_norm_eps", 0, "layer_norm_eps");
  rejects("id2label", json::array({1}), "id2label");
  rejects("id2label", json({{"0", "a"}, {"2", "b"}}), "number the classes");
  rejects("id2label", json({{"zero", "a"}}), "id2label");
  EXPECT_THROW(parse_bert_config(json::array(), "x"), DataError);
}

TEST(BertConfig, ReadsAFile) {
  const test::TempDir folder;
  test::write_text(folder / "config.json", bert_config_to_json(preset("bert-tiny")).dump());
  EXPECT_EQ(read_bert_config(folder / "config.json"), preset("bert-tiny"));
  test::write_text(folder / "config.json", "{\"hidden_size\": 12");
  EXPECT_THROW(read_bert_config(folder / "config.json"), DataError);
  EXPECT_THROW(read_bert_config(folder / "none.json"), DataError);
}

}  // namespace
}  // namespace syncopate::nn
