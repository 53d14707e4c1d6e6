#include "syncopate/nn/resnet/resnet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/nn/layers/show.h"
#include "syncopate/tensor/flat_params.h"
#include "syncopate/tensor/image_levels.h"

namespace syncopate::nn {
namespace {

ResNetConfig mini_resnet() {
  ResNetConfig config;
  config.widths = {6, 8};
  config.blocks = 2;
  config.channels = 3;
  config.num_labels = 5;
  return config;
}

Batch random_images(int64_t B, uint64_t seed = 1) {
  at::manual_seed(seed);
  Batch batch;
  batch.fields["images"] = at::randn({B, 3, 9, 9}) * 2 + 3;  // far from zero
  batch.fields["labels"] = at::randint(0, 5, {B}, at::kLong);
  for (int64_t i = 0; i < B; ++i) batch.ids.push_back(i);
  return batch;
}

Batch part_of(const Batch& whole, int64_t first, int64_t last) {
  Batch part;
  for (const auto& [name, value] : whole.fields) part.fields[name] = value.slice(0, first, last);
  part.ids.assign(whole.ids.begin() + first, whole.ids.begin() + last);
  return part;
}

TEST(ResNet, NamesAndShapes) {
  const auto model = make_resnet(resnet_preset("resnet-18"), 1);
  EXPECT_EQ(model->depth(), 10);
  std::set<std::string> names;
  int64_t elements = 0;
  for (const auto& [name, value] : model->parameters()) {
    EXPECT_TRUE(names.insert(name).second);
    EXPECT_TRUE(value.is_leaf() && value.requires_grad()) << name;
    elements += value.numel();
  }
  EXPECT_EQ(elements, 11173962);  // what PyTorch counts for this network
  for (const char* name :
       {"conv1.weight", "bn1.bias", "layer1.0.conv2.weight", "layer2.0.downsample.0.weight",
        "layer4.0.downsample.1.bias", "layer4.1.bn2.weight", "fc.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("layer1.0.downsample.0.weight"));
  EXPECT_EQ(model->buffers().size(), 2 * 20u);
  EXPECT_EQ(model->buffers()[0].name, "bn1.running_mean");
  EXPECT_EQ(make_resnet(resnet_preset("resnet-8"), 1)->depth(), 5);
  EXPECT_FALSE(model->every_rank_computes());
}

TEST(ResNet, InitialValuesDependOnlyOnTheSeed) {
  ResNetConfig config = mini_resnet();
  config.widths = {32, 64};
  const auto a = make_resnet(config, 7), b = make_resnet(config, 7), c = make_resnet(config, 8);
  const auto parameters = a->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, value] = parameters[i];
    EXPECT_TRUE(at::equal(value, b->parameters()[i].tensor)) << name;
    const bool fixed = value.dim() == 1 && name != "fc.bias";
    EXPECT_EQ(at::equal(value, c->parameters()[i].tensor), fixed) << name;
    if (name == "layer2.0.conv1.weight") {
      EXPECT_NEAR(value.abs().max().item<double>(), 1 / std::sqrt(288.0), 1e-4);
      EXPECT_NEAR(value.std().item<double>(), 1 / std::sqrt(3 * 288.0), 1e-3);
    }
    if (name == "fc.weight") {
      EXPECT_NEAR(value.abs().max().item<double>(), 1 / 8.0, 5e-3);
    }
  }
}

TEST(ResNet, SlicesOfLayersComposeToTheWhole) {
  const auto model = make_resnet(mini_resnet(), 1);
  const Batch batch = random_images(4);
  const at::Tensor whole = model->forward(batch);
  EXPECT_EQ(whole.size(1), 5);
  for (int cut = 1; cut < model->depth(); ++cut) {
    const at::Tensor hidden = model->forward({}, batch, {0, cut});
    EXPECT_TRUE(at::equal(model->forward(hidden, batch, {cut, model->depth()}), whole)) << cut;
  }
}

TEST(ResNet, MemoryLayoutDoesNotChangeTheResult) {
  const auto a = make_resnet(mini_resnet(), 1), b = make_resnet(mini_resnet(), 1);
  b->set_channels_last(false);
  const Batch batch = random_images(4);
  for (auto* model : {a.get(), b.get()}) {
    model->set_mode({true, 0});
    tensor::FlatParams params(model->parameters());
    model->loss(model->forward(batch), batch).sum.backward();
    params.check_views();
  }
  for (size_t i = 0; i < a->parameters().size(); ++i) {
    EXPECT_TRUE(at::allclose(a->parameters()[i].tensor.grad(), b->parameters()[i].tensor.grad(), 1e-3, 2e-4))
        << a->parameters()[i].name;
  }
}

TEST(ResNet, TakesImagesOfBytes) {
  ResNetConfig config = mini_resnet();
  config.mean = {0.4, 0.5, 0.6};
  config.std = {0.2, 0.3, 0.25};
  const auto model = make_resnet(config, 1);
  model->set_mode({.training = false});
  at::manual_seed(3);
  Batch bytes = random_images(4);
  bytes.fields["images"] = at::randint(0, 256, {4, 3, 9, 9}, at::kByte);
  bytes.fields["views"] = at::tensor({0, 0, 0, 1, -2, 0, 0, 0, 1, -1, 2, 1}, at::kLong).view({4, 3});
  Batch numbers = bytes;
  numbers.fields["images"] =
      show(bytes.at("images"), bytes.at("views"), tensor::image_levels(config.mean, config.std));
  EXPECT_TRUE(at::equal(model->forward(bytes), model->forward(numbers)));
  bytes.fields["views"] = at::zeros({4, 3}, at::kLong);
  EXPECT_FALSE(at::equal(model->forward(bytes), model->forward(numbers)));
}

TEST(ResNet, RunningStatisticsAreUpdatedInTrainingAndUsedInEvaluation) {
  const auto model = make_resnet(mini_resnet(), 1);
  const Batch batch = random_images(8);
  const at::Tensor before = model->forward(batch);
  EXPECT_TRUE(at::equal(model->forward(batch), before)) << "evaluation changes nothing";
  model->set_mode({true, 0});
  for (int i = 0; i < 200; ++i) model->forward(batch);
  const at::Tensor trained = model->forward(batch);
  model->set_mode({});
  const at::Tensor after = model->forward(batch);
  EXPECT_GT((after - before).abs().max().item<double>(), 0.1);
  // The running variance is the unbiased one, so that they do not quite meet.
  EXPECT_LT((after - trained).abs().max().item<double>(), 0.05 * trained.abs().max().item<double>());
}

TEST(ResNet, LabelSmoothingIsOffInEvaluation) {
  const auto model = make_resnet(mini_resnet(), 1);
  const Batch batch = random_images(4);
  const at::Tensor logits = model->forward(batch);
  const double sharp = model->loss(logits, batch).sum.item<double>();
  model->set_label_smoothing(0.1);
  EXPECT_EQ(model->loss(logits, batch).sum.item<double>(), sharp);
  model->set_mode({true, 0});
  const at::Tensor logs = at::log_softmax(logits, 1);
  const double spread = -0.1 / 5 * logs.sum().item<double>() + 0.9 * sharp;
  EXPECT_NEAR(model->loss(logits, batch).sum.item<double>(), spread, 1e-4);
  EXPECT_EQ(model->loss(logits, batch).count, 4);
  EXPECT_THROW(model->set_label_smoothing(1), ConfigError);
}

TEST(ResNet, RejectsInvalidBatches) {
  const auto model = make_resnet(mini_resnet(), 1);
  Batch batch = random_images(2);
  batch.fields["images"] = at::zeros({2, 1, 9, 9});
  EXPECT_THROW(model->forward(batch), DataError);
  batch.fields["images"] = at::zeros({2, 9, 9});
  EXPECT_THROW(model->forward(batch), DataError);
}

/// Sums over threads, one per rank.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}

  void sum(at::Tensor& mine) {
    std::unique_lock lock(mutex_);
    const int64_t round = round_;
    total_ = total_.defined() ? total_ + mine : mine.clone();
    if (++arrived_ == ranks_) {
      result_ = total_;
      total_.reset();
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return round_ != round; });
    }
    mine.copy_(result_);
  }

 private:
  int ranks_, arrived_ = 0;
  int64_t round_ = 0;
  std::mutex mutex_;
  std::condition_variable all_here_;
  at::Tensor total_, result_;
};

struct Trained {
  double loss = 0;
  std::vector<at::Tensor> gradients, buffers;
};

/// Loss and gradients summed over ranks that hold `sizes` of the images each.
Trained train_split(const Batch& whole, const std::vector<int64_t>& sizes, bool joint) {
  Meeting meeting(static_cast<int>(sizes.size()));
  std::vector<Trained> ranks(sizes.size());
  std::vector<std::thread> threads;
  int64_t first = 0;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    threads.emplace_back([&, rank, part = part_of(whole, first, first + sizes[rank])] {
      const auto model = make_resnet(mini_resnet(), 1);
      model->set_mode({true, 0});
      if (joint) {
        model->set_sum_over_ranks([&](at::Tensor& tensor) { meeting.sum(tensor); });
        EXPECT_TRUE(model->every_rank_computes());
      }
      const Loss loss = model->loss(model->forward(part), part);
      EXPECT_EQ(loss.count, part.size());
      loss.sum.backward();
      ranks[rank].loss = loss.sum.item<double>();
      for (const auto& [name, value] : model->parameters()) {
        ranks[rank].gradients.push_back(value.grad().defined() ? value.grad() : at::zeros_like(value));
      }
      for (const auto& [name, value] : model->buffers()) ranks[rank].buffers.push_back(value);
    });
    first += sizes[rank];
  }
  for (auto& thread : threads) thread.join();
  Trained sum = ranks[0];
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    sum.loss += ranks[rank].loss;
    for (size_t i = 0; i < sum.gradients.size(); ++i) sum.gradients[i] += ranks[rank].gradients[i];
    if (!joint) continue;
    for (size_t i = 0; i < sum.buffers.size(); ++i) {
      EXPECT_TRUE(at::equal(sum.buffers[i], ranks[rank].buffers[i])) << "ranks disagree on " << i;
    }
  }
  return sum;
}

/// The largest difference of gradients or buffers, in units of each tensor's largest.
double worst(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, ((a[i] - b[i]).abs().max() / b[i].abs().max().clamp_min(1e-3)).item<double>());
  }
  return most;
}

TEST(ResNet, SyncBatchNormMatchesOneWorkerWithTheWholeBatch) {
  const Batch whole = random_images(8);
  const Trained one = train_split(whole, {8}, false);
  const std::vector<std::vector<int64_t>> splits = {{4, 4}, {5, 3}, {8, 0}, {0, 1, 7}, {8}};
  for (const auto& sizes : splits) {
    const Trained joint = train_split(whole, sizes, true);
    EXPECT_NEAR(joint.loss / one.loss, 1, 1e-5);
    EXPECT_LT(worst(joint.gradients, one.gradients), 2e-5);
    EXPECT_LT(worst(joint.buffers, one.buffers), 1e-5);
  }
  const Trained apart = train_split(whole, {5, 3}, false);
  EXPECT_GT(worst(apart.gradients, one.gradients), 1e-2) << "the foil: each rank's own statistics";
  EXPECT_GT(worst(apart.buffers, one.buffers), 1e-3);
}

TEST(ResNet, AcceptsAnEmptyBatch) {
  const Trained none = train_split(random_images(3), {0}, false);
  EXPECT_EQ(none.loss, 0);
  for (const at::Tensor& gradient : none.gradients) EXPECT_EQ(gradient.abs().sum().item<double>(), 0);
  const auto model = make_resnet(mini_resnet(), 1);
  EXPECT_EQ(model->forward(part_of(random_images(3), 0, 0)).sizes(), at::IntArrayRef({0, 5}));
}

TEST(BatchNorm, VarianceIsAccurateForMeansFarFromZero) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({16, 2, 5, 5}) * 0.1 + 1000;
  const auto params = [] {
    return BatchNormParams{at::ones({2}), at::zeros({2}), at::zeros({2}), at::ones({2})};
  };
  const auto own = params(), joint = params();
  const at::Tensor right = batch_norm(x.to(at::kDouble),
                                      {own.weight.to(at::kDouble), own.bias.to(at::kDouble),
                                       own.running_mean.to(at::kDouble), own.running_var.to(at::kDouble)},
                                      {.training = true, .sum = {}});
  const at::Tensor made = batch_norm(x, joint, {.training = true, .sum = [](at::Tensor&) {}});
  // One unit in the last place of 1000 is 6e-5, of which a deviation of 0.1 makes 6e-4.
  EXPECT_LT((made - right).abs().max().item<double>(), 5e-3);
}

}  // namespace
}  // namespace syncopate::nn
