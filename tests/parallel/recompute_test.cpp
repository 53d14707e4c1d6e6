// Forward passes that are made twice instead of kept: the same in all but memory.
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include "syncopate/nn/stage_model.h"
#include "syncopate/parallel/engines/block_chain.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "tests/contract/ranks.h"
#include "tests/nn/small_models.h"

namespace syncopate::parallel {
namespace {

using test::small_models;
using test::SmallModel;

struct Made {
  LocalLoss loss;
  at::Tensor grads;
  std::vector<at::Tensor> buffers;
  std::vector<int> told;  ///< how often each parameter's gradient was announced
};

Made step(nn::Model& model, const std::vector<tensor::Batch>& micro, LocalEngineOptions options, uint64_t key,
          optim::LossScale* scale = nullptr) {
  tensor::FlatParams params(model.parameters());
  const auto optimizer = optim::make_optimizer({}, params);
  Replica replica{.model = model, .params = params, .optimizer = *optimizer, .loss_scale = scale};
  std::vector<int> told(params.entries().size());
  for (size_t i = 0; i < told.size(); ++i) {
    params.entries()[i].parameter.register_hook([&told, i](const at::Tensor&) { ++told[i]; });
  }
  const Gradients gradients = LocalEngine(options).run(replica, micro, key, {});
  params.check_views();
  Made made{.loss = gradients.loss, .grads = params.grads, .buffers = {}, .told = told};
  for (const auto& named : model.buffers()) made.buffers.push_back(named.tensor);
  return made;
}

/// Two micro-batches.
Made step(const SmallModel& kind, LocalEngineOptions options, uint64_t key = 7,
          optim::LossScale* scale = nullptr) {
  return step(*kind.make(1), {kind.batch(1), kind.batch(2)}, options, key, scale);
}

void expect_equal(const Made& left, const Made& right) {
  EXPECT_EQ(left.loss.sum, right.loss.sum);
  EXPECT_EQ(left.loss.count, right.loss.count);
  EXPECT_TRUE(at::equal(left.grads, right.grads));
  ASSERT_EQ(left.buffers.size(), right.buffers.size());
  for (size_t i = 0; i < left.buffers.size(); ++i) EXPECT_TRUE(at::equal(left.buffers[i], right.buffers[i]));
}

TEST(Recompute, GivesTheSameBits) {
  for (const SmallModel& kind : small_models()) {
    SCOPED_TRACE(kind.name);
    const Made kept = step(kind, {}), again = step(kind, {.recompute = true});
    expect_equal(again, kept);
    EXPECT_EQ(again.told, std::vector<int>(kept.told.size(), 2)) << "once for each micro-batch";
    EXPECT_EQ(again.told, kept.told);
    optim::LossScale scale(64);
    const Made scaled = step(kind, {.recompute = true}, 7, &scale);
    expect_equal(scaled, step(kind, {}, 7, &scale));
    EXPECT_FALSE(at::equal(scaled.grads, kept.grads));
    const Made foil = step(kind, {.recompute = true}, 8);
    if (kept.buffers.empty()) {
      EXPECT_FALSE(at::equal(foil.grads, kept.grads)) << "other noise";
    }
  }
}

TEST(Recompute, LeavesTheStatisticsOfBatchNormsAlone) {
  for (const SmallModel& kind : small_models()) {
    const auto model = kind.make(1);
    if (model->buffers().empty()) continue;
    const auto statistics = [&] {
      std::vector<at::Tensor> flat;
      for (const auto& named : model->buffers()) flat.push_back(named.tensor.flatten());
      return at::cat(flat);
    };
    const at::Tensor start = statistics();
    model->set_mode({.training = true, .noise_key = 1, .again = true});
    const at::Tensor again = model->forward(kind.batch(1));
    EXPECT_TRUE(at::equal(statistics(), start));
    model->set_mode({.training = true, .noise_key = 1});
    EXPECT_TRUE(at::equal(model->forward(kind.batch(1)), again));
    EXPECT_FALSE(at::equal(statistics(), start));
  }
}

TEST(Recompute, BatchNormsOverAllRanksGiveTheSameBits) {
  const SmallModel kind = small_models()[4];
  const auto ranks = [&](bool joint, bool recompute) {
    std::vector<Made> made(2);
    test::run_ranks(2, [&](comm::Group& group) {
      const auto model = kind.make(1);
      if (joint) {
        dynamic_cast<nn::ResNet&>(*model).set_sum_over_ranks(
            [&](at::Tensor& sums) { group.all_reduce(sums, comm::Op::kSum).wait(); });
      }
      tensor::Batch none = kind.batch(2);
      for (auto& [name, field] : none.fields) field = field.slice(0, 0, 0);
      none.ids.clear();
      const bool has_one = group.rank() == 0 || !joint;
      made[static_cast<size_t>(group.rank())] =
          step(*model, {kind.batch(1), has_one ? kind.batch(2) : none}, {.recompute = recompute}, 7);
    });
    return made;
  };
  const auto kept = ranks(true, false), again = ranks(true, true), foil = ranks(false, true);
  for (size_t rank = 0; rank < 2; ++rank) expect_equal(again[rank], kept[rank]);
  EXPECT_FALSE(at::equal(foil[0].grads, kept[0].grads));
}

/// Two micro-batches under way at once through two stages, with their own whole models.
TEST(BlockChain, OfStagesGivesTheGradientsOfTheWhole) {
  for (const SmallModel& kind : small_models()) {
    SCOPED_TRACE(kind.name);
    const Made right = step(kind, {});
    for (const bool recompute : {false, true}) {
      const auto first = kind.make(1), second = kind.make(1);
      nn::StageModel front(*first, {0, 3}), back(*second, {3, second->depth()});
      const tensor::FlatParams front_params(front.parameters()), back_params(back.parameters());
      const ChainOptions options{.mode = {.training = true, .noise_key = 7}, .recompute = recompute};
      std::vector<BlockChain> sent, received;
      LocalLoss total;
      for (const uint64_t number : {1, 2}) {
        sent.emplace_back(front, options, kind.batch(number));
        received.emplace_back(back, options, sent.back().take_output(), kind.batch(number),
                              nn::LayerRange{0, back.depth()});
        const tensor::Loss loss = received.back().loss();
        total.sum += loss.sum.item<double>();
        total.count += loss.count;
      }
      for (size_t i = 0; i < sent.size(); ++i) {
        const at::Tensor grad = received[i].backward_from_loss();
        EXPECT_FALSE(sent[i].backward(grad).defined());
      }
      EXPECT_EQ(total.sum, right.loss.sum);
      EXPECT_EQ(total.count, right.loss.count);
      if (!first->tied().empty()) continue;  // whose sums have another order
      // Gradients lie in the reverse order of the layers.
      EXPECT_TRUE(at::equal(at::cat({back_params.grads, front_params.grads}), right.grads));
    }
  }
}

/// Bytes that tensors of this thread take up on the CPU.
class Meter : public c10::MemoryReportingInfoBase {
 public:
  // The library's versions differ in the types of the totals.
  void reportMemoryUsage(void*, int64_t bytes, int64_t, int64_t, c10::Device) { add(bytes); }
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) { add(bytes); }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return peak_; }

 private:
  void add(int64_t bytes) { peak_ = std::max(peak_, now_ += bytes); }
  int64_t now_ = 0, peak_ = 0;
};

TEST(Recompute, KeepsWhatEntersLayersAlone) {
  const auto peak = [](LocalEngineOptions options) {
    auto config = test::small_config<nn::GptConfig>();
    config.layers = 12;
    config.hidden = 32;
    config.ffn = 128;
    config.max_positions = 64;
    const auto model = nn::make_gpt(config, 1);
    tensor::FlatParams params(model->parameters());
    const auto optimizer = optim::make_optimizer({}, params);
    Replica replica{.model = *model, .params = params, .optimizer = *optimizer};
    tensor::Batch batch;
    batch.fields["input_ids"] = at::arange(8 * 64).view({8, 64}).remainder(40);
    batch.fields["labels"] = batch.at("input_ids");
    batch.ids = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto meter = std::make_shared<Meter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    LocalEngine(options).run(replica, {&batch, 1}, 1, {});
    return static_cast<double>(meter->peak());
  };
  const double kept = peak({}), again = peak({.recompute = true});
  EXPECT_GT(again, 0);
  EXPECT_LT(again, 0.4 * kept);
  ::testing::Test::RecordProperty("share", std::to_string(again / kept));
}

}  // namespace
}  // namespace syncopate::parallel
