// Steps that a GPU recorded: what they compute is what the CPU computes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/parallel/engines/graph_engine.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "tests/nn/small_models.h"

namespace syncopate::parallel {
namespace {

using test::SmallModel;

#define SYNCOPATE_NEED_GRAPHS() \
  if (!at::hasCUDA() || !gpu::built()) GTEST_SKIP() << "needs a CUDA device and kernels for it"

struct Passed {
  LocalLoss loss;
  at::Tensor grads;
  int64_t recorded = 0;
};

std::unique_ptr<nn::Model> make(const SmallModel& kind, double dropout) {
  auto model = kind.make(1);
  if (auto* const bert = dynamic_cast<nn::Bert*>(model.get())) bert->set_dropout(dropout, dropout);
  if (auto* const gpt = dynamic_cast<nn::Gpt*>(model.get())) gpt->set_dropout(dropout);
  return model;
}

Passed on_cpu(const SmallModel& kind, uint64_t seed) {
  const auto model = make(kind, 0);
  tensor::FlatParams params(model->parameters());
  const auto optimizer = optim::make_optimizer({}, params);
  Replica replica{.model = *model, .params = params, .optimizer = *optimizer};
  const tensor::Batch batch = kind.batch(seed);
  const LocalLoss loss = LocalEngine().run(replica, {&batch, 1}, 7, {}).loss;
  return {.loss = loss, .grads = params.grads};
}

/// As often as it takes to record them; then another batch of the same shape, and the first one again.
/// `copies`: weights have copies in bf16, so that our kernels compute; else libtorch's do, by autocast.
Passed on_gpu(const SmallModel& kind, tensor::Precision precision, bool copies) {
  gpu::use_own_stream(at::Device(at::kCUDA, 0));
  const auto model = make(kind, 0);
  tensor::FlatParams params(model->parameters(), at::Device(at::kCUDA, 0));
  for (const auto& [name, buffer] : model->buffers()) buffer.set_data(buffer.to(at::kCUDA));
  if (copies) params.keep_half(at::kBFloat16);
  const auto optimizer = optim::make_optimizer({}, params);
  Replica replica{.model = *model, .params = params, .optimizer = *optimizer, .precision = precision};
  GraphEngine engine(std::make_unique<LocalEngine>(), [](const std::string& note) { ADD_FAILURE() << note; });
  Passed passed;
  for (const uint64_t seed : {1, 1, 1, 2, 1}) {
    const tensor::Batch batch = kind.batch(seed);
    params.zero_grads();
    passed.loss = engine.run(replica, {&batch, 1}, 7, {}).loss;
  }
  passed.grads = params.grads.cpu();
  passed.recorded = engine.recorded();
  return passed;
}

double gradients_off_by(const at::Tensor& made, const at::Tensor& right) {
  return ((made - right).norm() / right.norm()).item<double>();
}

void expect_what_the_cpu_computes(const SmallModel& kind) {
  SCOPED_TRACE(kind.name);
  const Passed right = on_cpu(kind, 1), other = on_cpu(kind, 2);
  const auto expect_near = [&](const Passed& made, double limit) {
    EXPECT_EQ(made.recorded, 1);
    EXPECT_EQ(made.loss.count, right.loss.count);
    EXPECT_NEAR(made.loss.sum / right.loss.sum, 1, limit);
    EXPECT_LT(gradients_off_by(made.grads, right.grads), limit);
    EXPECT_GT(gradients_off_by(made.grads, other.grads), 2 * limit);
  };
  expect_near(on_gpu(kind, tensor::Precision::kFp32, false), 2e-5);
  // Batch norms over a few values make much of rounding: what libtorch's kernels are off by is the measure.
  const double theirs = gradients_off_by(on_gpu(kind, tensor::Precision::kBf16, false).grads, right.grads);
  expect_near(on_gpu(kind, tensor::Precision::kBf16, true), std::max(0.06, 1.5 * theirs));
}

TEST(Cuda, RecordedStepsComputeWhatTheCpuComputes) {
  SYNCOPATE_NEED_GRAPHS();
  at::globalContext().setAllowTF32CuDNN(false);
  for (const SmallModel& kind : test::small_models()) expect_what_the_cpu_computes(kind);
}

/// Images of bytes, so many that batch norms take several blocks, for a stem whose convolution is a product.
SmallModel larger_images(int64_t channels) {
  const auto model = [channels](uint64_t seed) -> std::unique_ptr<nn::Model> {
    nn::ResNetConfig config;
    config.widths = {8, 16};
    config.blocks = 1;
    config.channels = channels;
    config.num_labels = 5;
    config.mean.assign(static_cast<size_t>(channels), 0.4);
    config.std.assign(static_cast<size_t>(channels), 0.3);
    return nn::make_resnet(config, seed);
  };
  const auto batch = [channels](uint64_t seed) {
    constexpr int64_t kImages = 16, kSide = 32;
    at::manual_seed(seed);
    nn::Batch made;
    made.fields["images"] = at::randint(0, 256, {kImages, channels, kSide, kSide}, at::kByte);
    made.fields["views"] =
        at::cat({at::randint(-4, 5, {kImages, 2}, at::kLong), at::randint(0, 2, {kImages, 1}, at::kLong)}, 1);
    made.fields["labels"] = at::randint(0, 5, {kImages}, at::kLong);
    for (int64_t i = 0; i < kImages; ++i) made.ids.push_back(i);
    return made;
  };
  return {"images of " + std::to_string(channels), model, batch};
}

TEST(Cuda, ResidualNetworksOfManyPixelsComputeWhatTheCpuComputes) {
  SYNCOPATE_NEED_GRAPHS();
  at::globalContext().setAllowTF32CuDNN(false);
  for (const int64_t channels : {3, 1}) expect_what_the_cpu_computes(larger_images(channels));
}

TEST(Cuda, KernelsDropWhatTheCpuDrops) {
  SYNCOPATE_NEED_GRAPHS();
  nn::BertConfig config = test::small_config<nn::BertConfig>();
  config.inner_dropout = 0.1;
  config.attention_dropout = 0;
  config.num_labels = 3;
  const tensor::Batch batch = test::small_models().front().batch(1);
  const auto gradient = [&](at::Device device, uint64_t key) {
    const auto model = nn::make_bert(config, 1);
    tensor::FlatParams params(model->parameters(), device);
    if (device.is_cuda()) {
      gpu::use_own_stream(device);
      params.keep_half(at::kBFloat16);
    }
    const auto optimizer = optim::make_optimizer({}, params);
    Replica replica{.model = *model,
                    .params = params,
                    .optimizer = *optimizer,
                    .precision = device.is_cuda() ? tensor::Precision::kBf16 : tensor::Precision::kFp32};
    LocalEngine().run(replica, {&batch, 1}, key, {});
    return params.grads.cpu();
  };
  const at::Tensor right = gradient(at::kCPU, 7);
  EXPECT_LT(gradients_off_by(gradient(at::Device(at::kCUDA, 0), 7), right), 0.06);
  EXPECT_GT(gradients_off_by(gradient(at::Device(at::kCUDA, 0), 8), right), 0.2);
}

TEST(Graphs, AreMissingWhereTheProgramHasNone) {
  if (gpu::built()) GTEST_SKIP() << "this program has them";
  EXPECT_FALSE(gpu::capturing(at::kCPU));
  EXPECT_THROW(gpu::Graph(), InternalError);
}

}  // namespace
}  // namespace syncopate::parallel
