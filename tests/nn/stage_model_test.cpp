#include "syncopate/nn/stage_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "syncopate/base/error.h"
#include "tests/nn/small_models.h"

namespace syncopate::nn {
namespace {

using test::small_models;
using test::SmallModel;

/// A stage as a rank has it: with a whole model of its own, of which it keeps its layers alone.
struct Stage {
  Stage(const SmallModel& kind, LayerRange layers) : whole(kind.make(1)), part(*whole, layers) {
    part.release_others();
  }
  std::unique_ptr<Model> whole;
  StageModel part;
  at::Tensor entered{}, left{};
};

/// Blocks dealt out evenly.
std::deque<Stage> cut(const SmallModel& kind, int stages) {
  const auto model = kind.make(1);
  std::deque<Stage> made;
  for (int i = 0, from = 0; i < stages; ++i) {
    const int to = i + 1 == stages ? model->depth() : 1 + (i + 1) * model->blocks() / stages;
    made.emplace_back(kind, LayerRange{from, to});
    from = to;
  }
  return made;
}

std::map<std::string, at::Tensor> by_name(const std::vector<tensor::NamedTensor>& tensors, bool grads) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : tensors) found[name] = grads ? tensor.grad() : tensor;
  return found;
}

/// Forward and backward through all stages, as ranks do it: each has leaves of its own. `keys`: of a stage.
Loss train(std::deque<Stage>& stages, const Batch& batch, const std::function<uint64_t(size_t)>& keys) {
  at::Tensor hidden;
  for (size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    if (hidden.defined()) stage.entered = hidden.detach().set_requires_grad(true);
    stage.part.set_mode({.training = true, .noise_key = keys(i)});
    hidden = stage.left = stage.part.forward(stage.entered, batch, {0, stage.part.depth()});
  }
  const Loss loss = stages.back().part.loss(hidden, batch);
  loss.sum.backward();
  for (size_t i = stages.size() - 1; i-- > 0;) stages[i].left.backward(stages[i + 1].entered.grad());
  return loss;
}

TEST(StageModel, ChainOfStagesIsTheWholeBitForBit) {
  for (const SmallModel& kind : small_models()) {
    const Batch batch = kind.batch(1);
    const auto whole = kind.make(1);
    whole->set_mode({.training = true, .noise_key = 3});
    const at::Tensor output = whole->forward(batch);
    const Loss right = whole->loss(output, batch);
    right.sum.backward();
    const auto grads = by_name(whole->parameters(), true), buffers = by_name(whole->buffers(), false);
    for (const int count : {2, 3, 4}) {
      SCOPED_TRACE(kind.name + " in " + std::to_string(count));
      auto stages = cut(kind, count);
      const Loss loss = train(stages, batch, [](size_t) { return 3; });
      EXPECT_TRUE(at::equal(stages.back().left, output));
      EXPECT_EQ(loss.sum.item<double>(), right.sum.item<double>());
      EXPECT_EQ(loss.count, right.count);
      const auto borrowed = by_name(stages.back().part.borrowed(), true);
      for (const Stage& stage : stages) {
        for (const auto& [name, grad] : by_name(stage.part.parameters(), true)) {
          const bool tied = borrowed.contains(name);
          EXPECT_TRUE(at::equal(tied ? grad + borrowed.at(name) : grad, grads.at(name))) << name;
          if (tied) {
            EXPECT_FALSE(at::equal(grad, grads.at(name))) << "the other part of it counts";
          }
        }
        for (const auto& [name, value] : by_name(stage.part.buffers(), false)) {
          EXPECT_TRUE(at::equal(value, buffers.at(name))) << name;
        }
      }
      if (buffers.empty()) {  // a ResNet has no dropout
        auto foil = cut(kind, count);
        const double other = train(foil, batch, [](size_t i) { return i == 0 ? 4 : 3; }).sum.item<double>();
        EXPECT_NE(other, right.sum.item<double>()) << "other noise in the first stage";
      }
    }
  }
}

TEST(StageModel, ParametersOfStagesAreThoseOfTheWholeEachOnce) {
  for (const SmallModel& kind : small_models()) {
    const auto whole = kind.make(1);
    const auto names = [](const std::vector<tensor::NamedTensor>& tensors) {
      std::vector<std::string> found;
      for (const auto& named : tensors) found.push_back(named.name);
      return found;
    };
    for (const int count : {1, 2, 3, 4}) {
      SCOPED_TRACE(kind.name + " in " + std::to_string(count));
      std::vector<tensor::NamedTensor> parameters, buffers;
      auto stages = cut(kind, count);
      for (const Stage& stage : stages) {
        for (const auto& each : stage.part.parameters()) parameters.push_back(each);
        for (const auto& each : stage.part.buffers()) buffers.push_back(each);
        EXPECT_EQ(stage.part.has_loss(), &stage == &stages.back());
        const bool borrows = count > 1 && &stage == &stages.back();
        EXPECT_EQ(stage.part.borrowed().size(), borrows ? whole->tied().size() : 0);
      }
      EXPECT_EQ(names(parameters), names(whole->parameters()));
      EXPECT_EQ(names(buffers), names(whole->buffers()));
    }
    EXPECT_EQ(whole->blocks(), 4);
    const bool ties = kind.name == "gpt" || kind.name == "masked words";
    EXPECT_EQ(whole->tied().size(), ties ? 1u : 0u) << kind.name;
  }
}

TEST(StageModel, CountsWithoutComputing) {
  for (const SmallModel& kind : small_models()) {
    const auto whole = kind.make(1);
    Batch batch = kind.batch(1);
    const int64_t count = whole->loss(whole->forward(batch), batch).count;
    for (const Stage& stage : cut(kind, 3)) EXPECT_EQ(stage.part.count(batch), count) << kind.name;
    const char* asks = batch.fields.contains("starts") ? "starts" : "labels";
    batch.fields[asks] = at::full_like(batch.at(asks), kNoLabel);
    EXPECT_EQ(whole->count(batch), 0) << kind.name;
    EXPECT_GT(count, 0) << kind.name;
  }
}

TEST(StageModel, EmptyHiddenIsShapedLikeWhatEnters) {
  for (const SmallModel& kind : small_models()) {
    const auto whole = kind.make(1);
    const Batch batch = kind.batch(1);
    whole->set_mode({.training = true, .noise_key = 3});
    for (int layer = 1; layer + 1 < whole->depth(); ++layer) {
      const at::Tensor hidden = whole->forward({}, batch, {0, layer});
      const at::Tensor empty = whole->empty_hidden(batch, layer);
      EXPECT_EQ(empty.sizes(), hidden.sizes()) << kind.name << layer;
      EXPECT_EQ(empty.strides(), hidden.strides()) << kind.name << layer;
      EXPECT_EQ(empty.scalar_type(), at::kFloat);
      EXPECT_FALSE(empty.requires_grad());
    }
    for (const int layer : {0, whole->depth() - 1, whole->depth()}) {
      EXPECT_THROW(whole->empty_hidden(batch, layer), InternalError) << kind.name << layer;
    }
    Stage second(kind, {2, whole->depth()});
    EXPECT_EQ(second.part.empty_hidden(batch, 1).sizes(), whole->empty_hidden(batch, 3).sizes());
  }
}

TEST(StageModel, ReleasesTheMemoryOfOtherLayers) {
  for (const SmallModel& kind : small_models()) {
    const auto whole = kind.make(1);
    StageModel part(*whole, {3, whole->depth()});
    std::vector<std::pair<std::string, c10::weak_intrusive_ptr<c10::StorageImpl>>> memory;
    for (const auto& all : {whole->parameters(), whole->buffers()}) {
      for (const auto& [name, tensor] : all) {
        if (tensor.requires_grad()) tensor.mutable_grad() = at::ones_like(tensor);
        memory.emplace_back(name, tensor.storage().getWeakStorageImpl());
      }
    }
    part.release_others();
    auto kept = by_name(part.parameters(), false);
    kept.merge(by_name(part.buffers(), false));
    kept.merge(by_name(part.borrowed(), false));
    size_t freed = 0;
    for (const auto& [name, storage] : memory) {
      EXPECT_NE(storage.expired(), kept.contains(name)) << kind.name << ": " << name;
      freed += storage.expired() ? 1 : 0;
    }
    EXPECT_GT(freed, kept.size() / 3);
    for (const auto& [name, tensor] : whole->parameters()) {
      EXPECT_EQ(tensor.grad().defined(), kept.contains(name)) << name;
    }
  }
}

TEST(StageModel, RowsOfTablesBelongToTheFirstStage) {
  const SmallModel kind = small_models().front();
  const Batch batch = kind.batch(1);
  auto stages = cut(kind, 2);
  ASSERT_EQ(stages.front().part.row_tables().size(), 1u);
  const auto uses = stages.front().part.rows_used(batch);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_TRUE(uses[0].table.is_same(stages.front().part.parameters().front().tensor));
  EXPECT_TRUE(stages.back().part.row_tables().empty());
  EXPECT_TRUE(stages.back().part.rows_used(batch).empty());
}

TEST(StageModel, RejectsCutsThatNoHiddenStatePasses) {
  const auto whole = small_models().front().make(1);
  const int depth = whole->depth();
  for (const LayerRange range :
       std::vector<LayerRange>{{0, depth - 1}, {depth - 1, depth}, {2, 2}, {3, depth + 1}}) {
    EXPECT_THROW(StageModel(*whole, range), InternalError) << range.first << ".." << range.last;
  }
  StageModel first(*whole, {0, 2});
  EXPECT_THROW(first.loss({}, {}), InternalError);
}

}  // namespace
}  // namespace syncopate::nn
