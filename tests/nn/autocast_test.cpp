// Half precision on the CPU: Debian's oneDNN dies of it on some CPUs, so this is for libtorch 2 alone.
#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::nn {
namespace {

double loss_in(tensor::Precision precision) {
  BertConfig config;
  config.vocab_size = 50;
  config.hidden = 32;
  config.layers = 2;
  config.heads = 2;
  config.ffn = 64;
  config.max_positions = 16;
  config.num_labels = 3;
  config.set_dropout(0);
  const auto model = make_bert(config, 5);
  model->set_mode({.training = true, .noise_key = 1});
  tensor::Batch batch;
  const at::Tensor words = at::arange(40, at::kLong).reshape({4, 10});
  batch.fields = {{"input_ids", words},
                  {"attention_mask", at::ones_like(words)},
                  {"labels", at::tensor({0, 1, 2, 0}, at::kLong)}};
  batch.ids.resize(4);
  tensor::Loss loss;
  {
    const tensor::Autocast autocast(precision, c10::kCPU);
    loss = model->loss(model->forward(batch), batch);
  }
  loss.sum.backward();
  EXPECT_GT(model->parameters().front().tensor.grad().abs().sum().item<double>(), 0);
  return loss.sum.item<double>();
}

TEST(Autocast, TrainsInHalfPrecisionOnTheCpu) {
  const double full = loss_in(tensor::Precision::kFp32), half = loss_in(tensor::Precision::kBf16);
  EXPECT_NEAR(half, full, 0.02 * full);
  EXPECT_NE(half, full) << "it was computed in bf16";
}

}  // namespace
}  // namespace syncopate::nn
#endif
