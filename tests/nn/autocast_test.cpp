// Half precision on the CPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/nn/gpt/gpt.h"
#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::nn {
namespace {

using tensor::cpu_precision;
using tensor::Precision;

template <typename Config>
Config config_of() {
  Config config;
  config.vocab_size = 50;
  config.hidden = 64;
  config.layers = 2;
  config.heads = 2;
  config.ffn = 96;
  config.max_positions = 48;
  config.initializer_range = 0.1;
  config.set_dropout(0.1);
  return config;
}

/// Of three texts of 40, 33 and 37 tokens, or of 40 each: more than a tile's rows.
tensor::Batch texts(bool padded) {
  at::manual_seed(2);
  tensor::Batch batch;
  const at::Tensor lengths =
      (padded ? at::tensor({40, 33, 37}, at::kLong) : at::full({3}, 40, at::kLong)).unsqueeze(1);
  const at::Tensor mask = at::arange(40).unsqueeze(0).lt(lengths).to(at::kLong);
  batch.fields = {{"attention_mask", mask}, {"input_ids", at::randint(1, 50, {3, 40}, at::kLong) * mask}};
  batch.ids = {5, 2, 9};
  return batch;
}

struct Case {
  std::string name;
  std::unique_ptr<Model> model;
  tensor::Batch batch;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool padded : {false, true}) {
    const std::string how = padded ? ", padded" : "";
    tensor::Batch classes = texts(padded);
    classes.fields["labels"] = at::tensor({1, 0, 1}, at::kLong);
    all.push_back({"classifier" + how, make_bert(config_of<BertConfig>(), 5), classes});
    tensor::Batch masked = texts(padded);
    masked.fields["masked"] = at::cat({at::arange(33), at::arange(40, 70)});
    masked.fields["labels"] = at::randint(1, 50, {63}, at::kLong);
    all.push_back({"masked words" + how, make_bert<BertMaskedLm>(config_of<BertConfig>(), 5), masked});
    tensor::Batch next = texts(padded);
    next.fields["labels"] = next.at("input_ids").masked_fill(next.at("attention_mask").eq(0), kNoLabel);
    all.push_back({"next words" + how, make_gpt(config_of<GptConfig>(), 5), next});
  }
  return all;
}

struct Passes {
  double loss;
  std::vector<tensor::NamedTensor> grads;
};

Passes passes_in(Precision precision, Case& one) {
  one.model->set_mode({.training = true, .noise_key = 1});
  tensor::Loss loss;
  {
    const tensor::Autocast autocast(precision, c10::kCPU);
    loss = one.model->loss(one.model->forward(one.batch), one.batch);
  }
  loss.sum.backward();
  Passes made{.loss = loss.sum.item<double>(), .grads = {}};
  for (const auto& [name, parameter] : one.model->parameters()) {
    const at::Tensor grad = parameter.grad();
    made.grads.push_back({name, grad.is_sparse() ? grad.to_dense() : grad.clone()});
    at::Tensor(parameter).mutable_grad().reset();
  }
  return made;
}

TEST(Autocast, TrainsInBf16OnTheCpu) {
  const kernels::Kernels& chosen = kernels::kernels();
  for (const kernels::Kernels* set : kernels::supported_kernels()) {
    kernels::use_kernels(*set);
    for (Case& one : cases()) {
      SCOPED_TRACE(std::string(set->name) + ", " + one.name);
      const Passes full = passes_in(Precision::kFp32, one), half = passes_in(Precision::kBf16, one);
      EXPECT_NEAR(half.loss, full.loss, 0.01 * full.loss);
      EXPECT_NE(half.loss, full.loss) << "it was computed in bf16";
      double worst = 0;
      for (size_t i = 0; i < full.grads.size(); ++i) {
        const at::Tensor &right = full.grads[i].tensor, &found = half.grads[i].tensor;
        if (right.norm().item<double>() < 1e-4) continue;  // a key's bias changes no probability
        const double off = ((found - right).norm() / right.norm()).item<double>();
        EXPECT_LT(off, 0.03) << full.grads[i].name;
        worst = std::max(worst, off);
      }
      EXPECT_GT(worst, 1e-3) << "the foil: it was rounded";
      EXPECT_EQ(passes_in(Precision::kFp32, one).loss, full.loss) << "outside of the region nothing is";
    }
  }
  kernels::use_kernels(chosen);
}

TEST(Autocast, IsTheRegionsOfThisThread) {
  EXPECT_EQ(cpu_precision(), Precision::kFp32);
  {
    const tensor::Autocast outer(Precision::kBf16, c10::kCPU);
    EXPECT_EQ(cpu_precision(), Precision::kBf16);
    const tensor::Autocast none(Precision::kFp32, c10::kCPU);
    EXPECT_EQ(cpu_precision(), Precision::kBf16) << "a region in fp32 does nothing";
    std::thread([] { EXPECT_EQ(cpu_precision(), Precision::kFp32); }).join();
  }
  EXPECT_EQ(cpu_precision(), Precision::kFp32);
}

}  // namespace
}  // namespace syncopate::nn
