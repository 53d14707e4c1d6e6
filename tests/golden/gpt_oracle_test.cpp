#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/file.h"
#include "syncopate/nn/gpt/gpt_folder.h"
#include "tests/golden/golden_support.h"
#include "tests/support/support.h"

// What Hugging Face's GPT-2 gave for the same folder and tokens.
namespace syncopate::test {
namespace {

struct Expected {
  tensor::Batch batch;
  at::Tensor last_logits;
  double loss = 0;
};

Expected read_expected(const std::filesystem::path& folder) {
  const auto json = nlohmann::json::parse(read_file(folder / "expect.json", "expected values"));
  Expected expected;
  std::vector<at::Tensor> rows, logits;
  for (const auto& row : json["input_ids"]) rows.push_back(at::tensor(row.get<std::vector<int64_t>>()));
  for (const auto& row : json["last_logits_first_16"]) {
    logits.push_back(at::tensor(row.get<std::vector<double>>()));
  }
  expected.batch.fields["input_ids"] = at::stack(rows);
  expected.batch.fields["labels"] = at::stack(rows);
  expected.batch.ids = {0, 1};
  expected.last_logits = at::stack(logits);
  expected.loss = json["loss"].get<double>();
  return expected;
}

Errors errors_of(nn::Gpt& model, const Expected& expected) {
  const at::Tensor logits = model.forward(expected.batch);
  const tensor::Loss loss = model.loss(logits, expected.batch);
  const at::Tensor last = logits.select(1, -1).narrow(1, 0, 16).to(at::kDouble);
  return {worst_of_largest(last, expected.last_logits),
          std::abs(loss.sum.item<double>() / static_cast<double>(loss.count) / expected.loss - 1)};
}

TEST(GptOracle, LogitsAndLossMatchHuggingFace) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/gpt2");
  const Expected expected = read_expected(folder);
  for (const bool plain : {false, true}) {
    const auto loaded = nn::load_gpt(folder, 0);
    loaded.model->set_plain(plain);
    const Errors errors = errors_of(*loaded.model, expected);
    EXPECT_LT(errors.logits, 1e-5) << plain;
    EXPECT_LT(errors.loss, 1e-5) << plain;
    RecordProperty(plain ? "plain" : "fast", std::to_string(errors.logits));
    // In training the loss makes its own logits.
    loaded.model->set_mode({.training = true, .noise_key = 1});
    const tensor::Loss loss = loaded.model->loss(loaded.model->forward(expected.batch), expected.batch);
    EXPECT_NEAR(loss.sum.item<double>() / static_cast<double>(loss.count) / expected.loss, 1, 1e-5);
    EXPECT_EQ(loss.count, 2 * 47);
  }
}

TEST(GptOracle, FoilsMiss) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/gpt2");
  const Expected expected = read_expected(folder);
  const auto with = [&](const std::function<void(nn::GptConfig&)>& settle, bool causal = true) {
    const auto loaded = nn::load_gpt(folder, 0, settle);
    loaded.model->set_causal(causal);
    return errors_of(*loaded.model, expected);
  };
  EXPECT_GT(with([](nn::GptConfig& config) { config.activation = nn::Activation::kGelu; }).logits, 5e-5);
  EXPECT_GT(with([](nn::GptConfig& config) { config.layer_norm_eps = 1e-3; }).logits, 5e-5);
  EXPECT_GT(with([](nn::GptConfig&) {}, false).loss, 1e-3);
}

TEST(GptOracle, SaveAndReloadGiveTheSameBits) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/gpt2");
  const Expected expected = read_expected(folder);
  const auto loaded = nn::load_gpt(folder, 0);
  const TempDir saved;
  nn::save_gpt(saved.path(), *loaded.model);
  const auto again = nn::load_gpt(saved.path(), 0);
  EXPECT_EQ(again.model->config(), loaded.model->config());
  EXPECT_TRUE(at::equal(again.model->forward(expected.batch), loaded.model->forward(expected.batch)));
}

}  // namespace
}  // namespace syncopate::test
