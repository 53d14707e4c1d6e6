#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "syncopate/nn/bert/bert_folder.h"
#include "syncopate/tensor/safetensors.h"
#include "tests/golden/golden_support.h"
#include "tests/support/support.h"

// What tools/export_reference.py wrote down of a plain PyTorch BERT in double precision.
namespace syncopate::test {
namespace {

constexpr double kLossTolerance = 5e-6;

class Golden : public testing::Test {
 protected:
  Golden() : file_(source_dir() / "tests/data_files/golden_bert.safetensors") {
    at::set_num_threads(1);  // tensors this small only wait for other threads
    config_ = nn::parse_bert_config(nlohmann::json::parse(file_.metadata().at("config")), "the golden file");
    for (int i = 0; file_.contains(fmt::format("batch.{}.labels", i)); ++i) {
      tensor::Batch batch;
      for (const char* name : {"input_ids", "token_type_ids", "attention_mask", "labels"}) {
        batch.fields[name] = file_.read(fmt::format("batch.{}.{}", i, name));
      }
      batch.ids.resize(static_cast<size_t>(batch.at("labels").size(0)));
      batches_.push_back(batch);
    }
  }

  std::unique_ptr<nn::BertClassifier> model(bool plain = false) const {
    auto made = std::make_unique<nn::BertClassifier>(config_);
    for (const auto& [name, parameter] : made->parameters()) {
      parameter.detach().copy_(file_.read("parameter." + name));
    }
    made->set_plain(plain);
    return made;
  }

  double loss_error(bool plain = false) {
    const auto trained = model(plain);
    const at::Tensor losses = file_.read("losses").to(at::kDouble);
    const std::vector<double> right(losses.data_ptr<double>(), losses.data_ptr<double>() + losses.numel());
    return worst_relative(train(*trained, batches_, adam_), right);
  }

  tensor::SafetensorsFile file_;
  nn::BertConfig config_;
  std::vector<tensor::Batch> batches_;
  PlainAdamW adam_;
};

TEST_F(Golden, LogitsAndEveryGradient) {
  ASSERT_EQ(batches_.size(), 10u);
  for (const bool plain : {false, true}) {
    for (const bool whole : {false, true}) {
      const auto made = model(plain);
      made->set_whole_last_layer(whole);
      EXPECT_LT(worst_of_largest(made->forward(batches_[0]), file_.read("logits")), 1e-5);
      for (const auto& [name, gradient] : gradients(*made, batches_[0])) {
        const at::Tensor right = file_.read("gradient." + name);
        const double tolerance = name.ends_with("key.bias") ? 1e-6 : 1e-5 * right.abs().max().item<double>();
        EXPECT_LT((gradient - right).abs().max().item<double>(), tolerance) << name << " plain " << plain;
      }
    }
  }
}

TEST_F(Golden, TenLosses) {
  EXPECT_LT(loss_error(), kLossTolerance);
  adam_ = {};
  EXPECT_LT(loss_error(true), kLossTolerance);
}

TEST_F(Golden, TanhGeluMisses) {
  config_.activation = nn::Activation::kGeluTanh;
  EXPECT_GT(loss_error(), 10 * kLossTolerance);
}

TEST_F(Golden, OtherLayerNormEpsilonMisses) {
  config_.layer_norm_eps = 1e-3;
  EXPECT_GT(loss_error(), 10 * kLossTolerance);
}

TEST_F(Golden, WithoutMaskMisses) {
  for (auto& batch : batches_) batch.fields["attention_mask"].fill_(1);
  EXPECT_GT(loss_error(), 1e-2);
}

TEST_F(Golden, WithoutTokenTypesMisses) {
  for (auto& batch : batches_) batch.fields["token_type_ids"].zero_();
  EXPECT_GT(loss_error(), 1e-2);
}

TEST_F(Golden, OtherOptimizersMiss) {
  adam_.weight_decay = 0;
  EXPECT_GT(loss_error(), 10 * kLossTolerance);
  adam_ = {};
  adam_.decay_everything = true;
  EXPECT_GT(loss_error(), 10 * kLossTolerance);
  adam_ = {};
  adam_.beta2 = 0.99;
  EXPECT_GT(loss_error(), 10 * kLossTolerance);
}

TEST_F(Golden, SaveAndReloadGiveTheSameBits) {
  const TempDir folder;
  const auto made = model();
  nn::save_bert(folder.path(), *made);
  const auto loaded = nn::load_bert<nn::BertClassifier>(folder.path(), {.seed = 0});
  EXPECT_EQ(loaded.model->config().labels, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(at::equal(loaded.model->forward(batches_[0]), made->forward(batches_[0])));
}

}  // namespace
}  // namespace syncopate::test
