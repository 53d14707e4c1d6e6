#include "syncopate/nn/gpt/gpt_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/tensor/safetensors.h"
#include "tests/support/support.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;
using test::TempDir;

GptConfig tiny_gpt() {
  GptConfig config;
  config.vocab_size = 30;
  config.hidden = 8;
  config.layers = 2;
  config.heads = 2;
  config.ffn = 20;
  config.max_positions = 10;
  config.activation = Activation::kGelu;
  config.residual_dropout = 0.2;
  config.eos_token = 4;
  config.bos_token = -1;
  return config;
}

int differences(const Gpt& a, const Gpt& b) {
  int count = 0;
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    count += at::equal(a.parameters()[i].tensor, b.parameters()[i].tensor) ? 0 : 1;
  }
  return count;
}

using Weights = std::vector<tensor::NamedTensor>;

/// A folder with the small model after `change` was done to its tensors and its configuration.
class GptFolder {
 public:
  explicit GptFolder(
      const std::function<void(Weights&)>& change = [](Weights&) {},
      const std::function<void(json&)>& change_config = [](json&) {})
      : original(make_gpt(tiny_gpt(), 5)) {
    Weights weights;
    for (const auto& [name, value] : original->parameters())
      weights.push_back({name, value.detach().clone()});
    change(weights);
    json config = gpt_config_to_json(tiny_gpt());
    change_config(config);
    tensor::write_safetensors(path() / "model.safetensors", weights);
    test::write_text(path() / "config.json", config.dump());
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::string fault() const {
    try {
      load_gpt(path(), 1);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  std::unique_ptr<Gpt> original;

 private:
  TempDir folder_;
};

TEST(GptFolder, SaveAndLoadGiveTheSameBits) {
  const TempDir folder;
  const auto model = make_gpt(tiny_gpt(), 9);
  save_gpt(folder / "deep/model", *model);
  const LoadedGpt loaded = load_gpt(folder / "deep/model", 1);
  EXPECT_EQ(differences(*model, *loaded.model), 0);
  EXPECT_EQ(loaded.model->config(), tiny_gpt());
  EXPECT_TRUE(loaded.notes.empty());
  save_gpt(folder / "again", *loaded.model);
  for (const char* name : {"model.safetensors", "config.json"}) {
    EXPECT_EQ(test::read_text(folder / "again" / name), test::read_text(folder / "deep/model" / name));
  }
}

TEST(GptFolder, AcceptsNameVariants) {
  const GptFolder bare([](Weights& weights) {
    for (auto& each : weights) each.name.erase(0, std::string("transformer.").size());
    weights.push_back({"h.0.attn.bias", at::ones({1, 1, 10, 10})});
    weights.push_back({"h.1.attn.masked_bias", at::full({}, -1e4)});
  });
  EXPECT_EQ(differences(*load_gpt(bare.path(), 1).model, *bare.original), 0);
  EXPECT_TRUE(load_gpt(bare.path(), 1).notes.empty());
  const GptFolder tied([](Weights& weights) { weights.push_back({"lm_head.weight", weights[0].tensor}); });
  EXPECT_EQ(differences(*load_gpt(tied.path(), 1).model, *tied.original), 0);
  const GptFolder more([](Weights& weights) { weights.push_back({"v_head.weight", at::ones({3})}); });
  EXPECT_EQ(load_gpt(more.path(), 1).notes.size(), 1u);
  const auto quiet = load_gpt(tied.path(), 1, [](GptConfig& config) { config.set_dropout(0); });
  EXPECT_EQ(quiet.model->config().residual_dropout, 0);
}

TEST(GptFolder, RejectsInvalidFolders) {
  const auto says = [](const std::string& fault, const std::string& what) {
    EXPECT_NE(fault.find(what), std::string::npos) << "expected \"" << what << "\" in: " << fault;
  };
  says(GptFolder([](Weights& w) { w.push_back({"lm_head.weight", w[0].tensor + 1}); }).fault(), "only tied");
  says(GptFolder([](Weights& w) { w.pop_back(); }).fault(), "ln_f.bias");
  says(GptFolder([](Weights& w) { w[0].tensor = at::ones({31, 8}); }).fault(), "vocab_size 30");
  const auto with = [](const char* key, const json& value) {
    return GptFolder([](Weights&) {}, [&](json& config) { config[key] = value; }).fault();
  };
  says(with("scale_attn_by_inverse_layer_idx", true), "scale_attn_by_inverse_layer_idx");
  says(with("scale_attn_weights", false), "scale_attn_weights");
  says(with("activation_function", "relu"), "relu");
  says(with("model_type", "bert"), "bert");
  says(with("n_head", 3), "multiple");
  says(with("n_layer", "two"), "whole number");
  says(with("n_embd", nullptr), "n_embd");
  EXPECT_THROW(load_gpt("/nowhere/at/all", 1), DataError);
}

}  // namespace
}  // namespace syncopate::nn
