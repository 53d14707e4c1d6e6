#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "syncopate/nn/gpt/generate.h"
#include "syncopate/nn/gpt/gpt.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/resnet/resnet.h"
#include "syncopate/optim/clip.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/tensor/flat_params.h"

// Models and optimizers on a GPU give what they give on the CPU.
namespace syncopate::nn {
namespace {

#define SYNCOPATE_NEED_CUDA() \
  if (!at::hasCUDA()) GTEST_SKIP() << "needs a CUDA device"

void move(const Model& model, at::Device device) {
  for (const auto& [name, value] : model.parameters()) value.set_data(value.detach().to(device));
  for (const auto& [name, value] : model.buffers()) value.set_data(value.to(device));
}

Batch on(const Batch& batch, at::Device device) {
  Batch moved = batch;
  for (auto& [name, value] : moved.fields) value = value.to(device);
  return moved;
}

struct Result {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  at::Tensor values;  ///< after three steps
};

Result train(Model& model, const Batch& batch, at::Device device, const optim::OptimizerOptions& options) {
  move(model, device);
  model.set_mode({.training = true, .noise_key = 3});
  tensor::FlatParams params(model.parameters());
  const auto optimizer = optim::make_optimizer(options, params);
  const Batch moved = on(batch, device);
  Result result;
  for (int step = 0; step < 3; ++step) {
    params.zero_grads();
    const Loss loss = model.loss(model.forward(moved), moved);
    loss.sum.backward();
    params.check_views();
    const double scale = 1.0 / static_cast<double>(loss.count);
    if (step == 0) {
      result.loss = loss.sum.item<double>();
      for (const auto& entry : params.entries()) {
        result.gradients.push_back(params.grad_of(entry).to(at::kCPU, at::kFloat, false, true));
      }
    }
    const double norm = optim::gradient_norm(params.grads, scale);
    optimizer->step(params, 1e-3, scale * optim::clip_factor(norm, 1));
  }
  result.values = params.values.to(at::kCPU);
  return result;
}

/// The same model trained on both devices: losses, gradients and values must meet.
void expect_alike(const std::function<std::unique_ptr<Model>()>& make, const Batch& batch,
                  const optim::OptimizerOptions& options, double tolerance) {
  const auto ours = make(), theirs = make();
  const Result cpu = train(*ours, batch, at::kCPU, options), gpu = train(*theirs, batch, at::kCUDA, options);
  EXPECT_NEAR(gpu.loss / cpu.loss, 1, tolerance);
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    const double largest = cpu.gradients[i].abs().max().item<double>();
    EXPECT_LT((gpu.gradients[i] - cpu.gradients[i]).abs().max().item<double>(),
              20 * tolerance * largest + 1e-6);
  }
  // Adam's first steps follow a gradient's sign, which rounding may turn where it is nearly zero.
  EXPECT_LT((gpu.values - cpu.values).abs().mean().item<double>(), 1e-5);
  EXPECT_GT((make()->parameters()[0].tensor - ours->parameters()[0].tensor).abs().max().item<double>(), 1e-4);
}

GptConfig small_gpt(double dropout) {
  GptConfig config;
  config.vocab_size = 101;
  config.hidden = 48;
  config.layers = 2;
  config.heads = 3;
  config.ffn = 96;
  config.max_positions = 80;
  config.initializer_range = 0.2;
  config.set_dropout(dropout);
  return config;
}

Batch text_batch(bool padded) {
  at::manual_seed(1);
  Batch batch;
  batch.fields["input_ids"] = at::randint(0, 101, {3, 70}, at::kLong);
  batch.fields["labels"] = batch.at("input_ids").clone();
  batch.fields["labels"][1].slice(0, 40).fill_(kNoLabel);
  if (padded) {
    batch.fields["attention_mask"] = at::ones({3, 70}, at::kLong);
    batch.fields["attention_mask"][1].slice(0, 40).zero_();
  }
  batch.ids = {0, 1, 2};
  return batch;
}

TEST(Cuda, GptMatchesTheCpu) {
  SYNCOPATE_NEED_CUDA();
  for (const bool padded : {false, true}) {
    const auto make = [&] { return make_gpt(small_gpt(0), 1); };
    expect_alike(make, text_batch(padded), {.kind = "adamw", .weight_decay = 0.1}, 1e-5);
  }
}

TEST(Cuda, DropoutIsAFunctionOfItsKey) {
  SYNCOPATE_NEED_CUDA();
  const auto loss = [](double dropout, at::Device device, uint64_t key) {
    const auto model = make_gpt(small_gpt(dropout), 1);
    move(*model, device);
    const Batch batch = on(text_batch(true), device);  // seeds the device too
    model->set_mode({.training = true, .noise_key = key});
    return model->loss(model->forward(batch), batch).sum.item<double>();
  };
  const double gpu = loss(0.2, at::kCUDA, 3);
  EXPECT_EQ(gpu, loss(0.2, at::kCUDA, 3));
  EXPECT_NE(gpu, loss(0.2, at::kCUDA, 4));
  // Other elements are dropped than on the CPU, but as many.
  EXPECT_NEAR(gpu / loss(0.2, at::kCPU, 3), 1, 0.05);
  EXPECT_NE(gpu, loss(0, at::kCUDA, 3));
}

TEST(Cuda, GeneratedTextMatchesTheCpu) {
  SYNCOPATE_NEED_CUDA();
  const auto ours = make_gpt(small_gpt(0), 1), theirs = make_gpt(small_gpt(0), 1);
  move(*theirs, at::kCUDA);
  EXPECT_EQ(generate(*ours, {1, 2}, 20, {.temperature = 0}, 1),
            generate(*theirs, {1, 2}, 20, {.temperature = 0}, 1));
}

TEST(Cuda, OptimizersMatchTheCpu) {
  SYNCOPATE_NEED_CUDA();
  for (const std::string& kind : optim::optimizer_names()) {
    const auto make = [&] { return make_gpt(small_gpt(0), 1); };
    expect_alike(make, text_batch(false),
                 {.kind = kind, .weight_decay = 0.1, .nesterov = kind == "sgd", .trust = 0.5}, 1e-5);
  }
}

TEST(Cuda, ResNetMatchesTheCpu) {
  SYNCOPATE_NEED_CUDA();
  at::globalContext().setAllowTF32CuDNN(false);
  at::manual_seed(2);
  Batch batch;
  batch.fields["images"] = at::randn({8, 3, 16, 16});
  batch.fields["labels"] = at::randint(0, 10, {8}, at::kLong);
  batch.ids.resize(8);
  for (const bool synchronised : {false, true}) {
    const auto make = [&] {
      auto model = make_resnet(resnet_preset("resnet-8"), 1);
      if (synchronised) model->set_sum_over_ranks([](at::Tensor&) {});
      return model;
    };
    expect_alike(make, batch, {.kind = "sgd", .weight_decay = 0.1}, 1e-4);
  }
}

TEST(Cuda, HalfPrecisionTrains) {
  SYNCOPATE_NEED_CUDA();
  const auto model = make_gpt(small_gpt(0.1), 1);
  for (const auto& [name, value] : model->parameters()) value.set_data(value.detach().to(at::kBFloat16));
  const auto exact = make_gpt(small_gpt(0.1), 1);
  for (const bool padded : {false, true}) {
    const Result half = train(*model, text_batch(padded), at::kCUDA, {.kind = "adamw"});
    const Result full = train(*exact, text_batch(padded), at::kCUDA, {.kind = "adamw"});
    EXPECT_NEAR(half.loss / full.loss, 1, 0.02);
    EXPECT_TRUE(half.values.isfinite().all().item<bool>());
  }
}

}  // namespace
}  // namespace syncopate::nn
