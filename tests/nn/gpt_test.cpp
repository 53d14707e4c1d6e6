#include "syncopate/nn/gpt/gpt.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "syncopate/base/error.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/tensor/flat_params.h"

namespace syncopate::nn {
namespace {

GptConfig mini_gpt() {
  GptConfig config;
  config.vocab_size = 60;
  config.hidden = 24;
  config.layers = 3;
  config.heads = 3;
  config.ffn = 50;
  config.max_positions = 150;
  config.initializer_range = 0.2;
  return config;
}

Batch random_tokens(int64_t B, int64_t L, bool padded = false, uint64_t seed = 1) {
  at::manual_seed(seed);
  Batch batch;
  batch.fields["input_ids"] = at::randint(0, 60, {B, L}, at::kLong);
  batch.fields["labels"] = batch.at("input_ids").clone();
  if (padded) {
    const at::Tensor lengths = at::randint(2, L + 1, {B, 1}, at::kLong);
    const at::Tensor mask = at::arange(L).unsqueeze(0).lt(lengths).to(at::kLong);
    batch.fields["attention_mask"] = mask;
    batch.fields["labels"].masked_fill_(mask.eq(0), kNoLabel);
  }
  for (int64_t i = 0; i < B; ++i) batch.ids.push_back(i);
  return batch;
}

std::vector<at::Tensor> grads(Gpt& model, const Batch& batch) {
  for (const auto& [name, parameter] : model.parameters()) parameter.mutable_grad().reset();
  model.loss(model.forward(batch), batch).sum.backward();
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.grad());
  return all;
}

/// The largest difference of two models' gradients, in units of each tensor's largest.
double worst_difference(Gpt& a, Gpt& b, const Batch& batch) {
  const auto left = grads(a, batch), right = grads(b, batch);
  double worst = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    worst = std::max(worst, ((left[i] - right[i]).abs().max() / right[i].abs().max()).item<double>());
  }
  return worst;
}

TEST(Gpt, ParametersAreNamedLeavesInOrderOfUse) {
  const auto model = make_gpt(mini_gpt(), 1);
  const auto parameters = model->parameters();
  EXPECT_EQ(parameters.size(), 2 + 12 * 3 + 2u);
  EXPECT_EQ(parameters.front().name, "transformer.wte.weight");
  EXPECT_EQ(parameters.back().name, "transformer.ln_f.bias");
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    EXPECT_TRUE(names.insert(name).second);
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad()) << name;
  }
  EXPECT_TRUE(names.contains("transformer.h.2.mlp.c_proj.weight"));
  EXPECT_EQ(model->depth(), 5);
  EXPECT_FALSE(model->every_rank_computes());
}

TEST(Gpt, InitialValuesDependOnlyOnTheSeed) {
  GptConfig config = mini_gpt();
  config.hidden = 96;
  config.ffn = 384;
  const auto a = make_gpt(config, 7), b = make_gpt(config, 7), c = make_gpt(config, 8);
  const auto parameters = a->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, value] = parameters[i];
    EXPECT_TRUE(at::equal(value, b->parameters()[i].tensor)) << name;
    EXPECT_EQ(at::equal(value, c->parameters()[i].tensor), value.dim() == 1) << name;
    if (value.dim() == 1) {
      EXPECT_EQ(value.sum().item<double>(), name.ends_with("bias") ? 0 : 96) << name;
    }
    if (name.ends_with("c_fc.weight")) {
      EXPECT_NEAR(value.std().item<double>(), 0.2, 0.01);
    }
    if (name.ends_with("c_proj.weight")) {
      EXPECT_NEAR(value.std().item<double>(), 0.2 / std::sqrt(6.0), 0.005);
    }
  }
}

TEST(Gpt, FastPathMatchesReference) {
  const auto fast = make_gpt(mini_gpt(), 1), plain = make_gpt(mini_gpt(), 1);
  plain->set_plain(true);
  for (const bool padded : {false, true}) {
    const Batch batch = random_tokens(3, 71, padded);
    for (const bool training : {false, true}) {
      fast->set_mode({training, 5});
      plain->set_mode({training, 5});
      const Loss left = fast->loss(fast->forward(batch), batch);
      const Loss right = plain->loss(plain->forward(batch), batch);
      EXPECT_EQ(left.count, right.count);
      EXPECT_NEAR(left.sum.item<double>() / right.sum.item<double>(), 1, 2e-6);
      EXPECT_LT(worst_difference(*fast, *plain, batch), 5e-5);
    }
    plain->set_mode({true, 6});  // other noise: the comparison can fail
    EXPECT_GT(worst_difference(*fast, *plain, batch), 1e-2);
  }
}

TEST(Gpt, LaterTokensDoNotReachEarlierLogits) {
  const auto model = make_gpt(mini_gpt(), 1);
  const Batch batch = random_tokens(2, 90);
  Batch other = batch;
  other.fields["input_ids"] = batch.at("input_ids").clone();
  other.fields["input_ids"].narrow(1, 50, 40).fill_(3);
  const auto difference = [&] {
    return (model->forward(batch) - model->forward(other)).narrow(1, 0, 50).abs().max().item<double>();
  };
  EXPECT_LT(difference(), 1e-6);
  model->set_causal(false);
  EXPECT_GT(difference(), 1e-3);
}

TEST(Gpt, PaddingDoesNotReachTheLoss) {
  const auto model = make_gpt(mini_gpt(), 1);
  const Batch batch = random_tokens(3, 20, true);
  Batch longer = batch;
  longer.fields["input_ids"] = at::constant_pad_nd(batch.at("input_ids"), {5, 9}, 7);
  longer.fields["attention_mask"] = at::constant_pad_nd(batch.at("attention_mask"), {5, 9});
  longer.fields["labels"] = at::constant_pad_nd(batch.at("labels"), {5, 9}, kNoLabel);
  longer.fields["labels"].select(1, 5).fill_(kNoLabel);  // what padding before it would predict
  const auto loss = [&](const Batch& each) { return model->loss(model->forward(each), each); };
  // Positions count from the left, so that only padding on the right leaves a text where it was.
  Batch right = batch;
  for (const char* name : {"input_ids", "attention_mask"}) {
    right.fields[name] = at::constant_pad_nd(batch.at(name), {0, 9});
  }
  right.fields["labels"] = at::constant_pad_nd(batch.at("labels"), {0, 9}, kNoLabel);
  EXPECT_EQ(loss(batch).count, loss(right).count);
  EXPECT_NEAR(loss(batch).sum.item<double>(), loss(right).sum.item<double>(), 1e-3);
  EXPECT_TRUE(loss(longer).sum.isfinite().item<bool>()) << "rows that see padding alone";
  const double with_mask = loss(longer).sum.item<double>();
  longer.fields["attention_mask"].fill_(1);
  EXPECT_GT(std::abs(loss(longer).sum.item<double>() - with_mask), 1e-2);
}

TEST(Gpt, LossIsThatOfTheNextToken) {
  const auto model = make_gpt(mini_gpt(), 1);
  Batch batch = random_tokens(2, 9);
  batch.fields["labels"][1].slice(0, 4).fill_(kNoLabel);
  const Loss loss = model->loss(model->forward(batch), batch);
  EXPECT_EQ(loss.count, 8 + 3);
  const at::Tensor logits = model->forward(batch);
  double sum = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t l = 0; l < (b == 0 ? 8 : 3); ++l) {
      const int64_t next = batch.at("input_ids")[b][l + 1].item<int64_t>();
      sum -= at::log_softmax(logits[b][l], 0)[next].item<double>();
    }
  }
  EXPECT_NEAR(loss.sum.item<double>(), sum, 1e-4);
}

TEST(Gpt, SlicesOfLayersComposeToTheWhole) {
  const auto model = make_gpt(mini_gpt(), 1);
  const Batch batch = random_tokens(3, 11);
  for (const bool training : {false, true}) {
    model->set_mode({training, 3});
    const at::Tensor whole = model->forward(batch);
    EXPECT_EQ(whole.size(2), training ? 24 : 60);
    for (int cut = 1; cut < model->depth(); ++cut) {
      const at::Tensor hidden = model->forward({}, batch, {0, cut});
      EXPECT_TRUE(at::equal(model->forward(hidden, batch, {cut, model->depth()}), whole)) << cut;
    }
  }
}

TEST(Gpt, DropoutDependsOnlyOnKeyAndSite) {
  const Batch batch = random_tokens(3, 11);
  std::vector<at::Tensor> seen;
  for (int place = 0; place < 3; ++place) {
    GptConfig config = mini_gpt();
    config.set_dropout(0);
    if (place == 0) config.embedding_dropout = 0.3;
    if (place == 1) config.attention_dropout = 0.3;
    if (place == 2) config.residual_dropout = 0.3;
    const auto model = make_gpt(config, 1);
    model->set_mode({true, 4});
    const at::Tensor first = model->forward(batch);
    EXPECT_TRUE(at::equal(model->forward(batch), first));
    model->set_mode({true, 5});
    EXPECT_FALSE(at::equal(model->forward(batch), first));
    for (const at::Tensor& other : seen) EXPECT_FALSE(at::equal(other, first));
    seen.push_back(first);
  }
}

TEST(Gpt, TiedEmbeddingReceivesBothGradients) {
  const auto model = make_gpt(mini_gpt(), 1), other = make_gpt(mini_gpt(), 1);
  const Batch batch = random_tokens(3, 11);
  for (const bool training : {false, true}) {
    model->set_mode({training, 3});
    other->set_mode({training, 3});
    const auto fresh = grads(*other, batch);
    tensor::FlatParams params(model->parameters());
    model->loss(model->forward(batch), batch).sum.backward();
    params.check_views();
    for (size_t i = 0; i < fresh.size(); ++i) {
      EXPECT_TRUE(at::allclose(model->parameters()[i].tensor.grad(), fresh[i], 1e-4, 1e-5))
          << model->parameters()[i].name;
    }
  }
  EXPECT_TRUE(model->row_tables().empty());
}

TEST(Gpt, RejectsInvalidBatches) {
  const auto model = make_gpt(mini_gpt(), 1);
  Batch batch = random_tokens(2, 5);
  batch.fields["input_ids"][1][2] = 60;
  EXPECT_THROW(model->forward(batch), DataError);
  batch = random_tokens(2, 151);
  EXPECT_THROW(model->forward(batch), DataError);
  batch = random_tokens(2, 5);
  batch.fields["labels"] = at::zeros({2}, at::kLong);
  EXPECT_THROW(model->loss(model->forward(batch), batch), DataError);
}

TEST(GptConfig, PresetsAndInvalidConfigs) {
  EXPECT_EQ(gpt_preset("gpt2-xl").layers, 48);
  EXPECT_EQ(gpt_preset("gpt2-xl").hidden, 1600);
  EXPECT_EQ(gpt_preset("gpt-tiny").ffn, 512);
  EXPECT_EQ(gpt_preset("gpt-mini").max_positions, 1024);
  EXPECT_TRUE(is_gpt_preset("gpt2") && !is_gpt_preset("gpt3"));
  EXPECT_THROW(gpt_preset("gpt-tinny"), ConfigError);
  GptConfig config = mini_gpt();
  config.heads = 5;
  EXPECT_THROW(Gpt{config}, ConfigError);
}

}  // namespace
}  // namespace syncopate::nn
