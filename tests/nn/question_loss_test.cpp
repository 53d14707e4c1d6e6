#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/nn/bert/bert_heads.h"

namespace syncopate::nn {
namespace {

Batch asked(int64_t length, int64_t padding) {
  Batch batch;
  batch.ids = {0};
  batch.fields["attention_mask"] =
      at::cat({at::ones({1, length}, at::kLong), at::zeros({1, padding}, at::kLong)}, 1);
  batch.fields["starts"] = at::full({1}, 2, at::kLong);
  batch.fields["ends"] = at::full({1}, 4, at::kLong);
  return batch;
}

/// An example's loss must not depend on the others in its batch, or workers that share a batch would differ
/// from one that has it whole.
TEST(QuestionLoss, IgnoresPadding) {
  BertConfig config;
  config.vocab_size = 20;
  config.hidden = 8;
  config.layers = 1;
  config.heads = 2;
  config.ffn = 8;
  for (const double smoothing : {0.0, 0.2}) {
    BertQuestionAnswering model(config);
    model.set_label_smoothing(smoothing);
    model.set_mode({.training = true, .noise_key = 1});
    const at::Tensor short_logits = (at::arange(12, at::kFloat).view({1, 6, 2}) * 0.3).sin();
    const auto loss = [&](int64_t padding, at::Tensor& gradient) {
      const at::Tensor logits =
          at::cat({short_logits, at::full({1, padding, 2}, 1.5)}, 1).set_requires_grad(true);
      const Loss found = model.loss(logits, asked(6, padding));
      EXPECT_EQ(found.count, 1);
      found.sum.backward();
      gradient = logits.grad();
      return found.sum.item<double>();
    };
    at::Tensor alone, padded;
    const double right = loss(0, alone);
    EXPECT_NEAR(loss(5, padded), right, 1e-6);
    EXPECT_TRUE(at::allclose(padded.narrow(1, 0, 6), alone, 1e-5, 1e-7));
    EXPECT_EQ(padded.narrow(1, 6, 5).abs().max().item<double>(), 0);
    // By ATen alone, and what it would be with the padding among the choices.
    const auto plain = [&](const at::Tensor& logits) {
      const auto one = [&](int64_t side, int64_t place) {
        return at::cross_entropy_loss(logits.select(2, side), at::full({1}, place, at::kLong), {},
                                      at::Reduction::Sum, -100, smoothing)
            .item<double>();
      };
      return (one(0, 2) + one(1, 4)) / 2;
    };
    EXPECT_NEAR(right, plain(short_logits), 1e-6);
    EXPECT_GT(std::abs(plain(at::cat({short_logits, at::full({1, 5, 2}, 1.5)}, 1)) - right), 0.1);
  }
}

}  // namespace
}  // namespace syncopate::nn
