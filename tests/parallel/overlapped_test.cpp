#include "syncopate/parallel/strategies/overlapped.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/engines/local_engine.h"

namespace syncopate::parallel {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

struct Exchanged {
  Events events;
  at::Tensor grads;
  size_t buckets = 0;
};

tensor::Batch batch_of(int rank) {
  at::Tensor words = (at::arange(12, at::kLong) + 5 * rank + 1).view({3, 4});
  tensor::Batch batch;
  batch.fields = {{"input_ids", words},
                  {"token_type_ids", at::zeros_like(words)},
                  {"attention_mask", at::ones_like(words)},
                  {"labels", at::arange(3, at::kLong)}};
  batch.ids = {0, 1, 2};
  return batch;
}

/// One step of a small BERT on two ranks; what rank 0's strategy did, in order.
Exchanged one_step(const Overlapped::Options& options) {
  auto groups = comm::open_in_process(2, std::chrono::seconds(30));
  Exchanged result;
  const auto rank_main = [&](int rank) {
    nn::BertConfig config;
    config.vocab_size = 60;
    config.hidden = 16;
    config.layers = 3;
    config.heads = 2;
    config.ffn = 32;
    config.max_positions = 8;
    config.num_labels = 3;
    config.set_dropout(0);
    const auto model = nn::make_bert(config, 1);
    tensor::FlatParams params(model->parameters());
    const auto optimizer = optim::make_optimizer({}, params);
    Replica replica{.model = *model, .params = params, .optimizer = *optimizer};
    Overlapped::Observer observer;
    if (rank == 0)
      observer = [&](const char* event, const std::string& what) { result.events.emplace_back(event, what); };
    comm::Group& group = *groups[static_cast<size_t>(rank)];
    Overlapped strategy(group, std::make_unique<AllReduce>(group), options, observer);
    strategy.start(replica);
    const std::vector<tensor::Batch> micro{batch_of(rank)};
    LocalEngine engine;
    StepContext context;
    const auto before_backward = [&](const LocalLoss&, std::span<const tensor::RowUse> rows, bool last) {
      context.rows = rows;
      strategy.before_backward(replica, context, last);
    };
    const Gradients made = engine.run(replica, micro, 7, {.phase = {}, .before_backward = before_backward});
    context.rows = made.rows;
    context.count = 6;
    strategy.step(replica, context);
    if (rank == 0) {
      result.grads = params.grads.clone();
      result.buckets = strategy.bucket_count();
    }
  };
  std::thread other(rank_main, 1);
  rank_main(0);
  other.join();
  return result;
}

ptrdiff_t position(const Events& events, const std::string& event, const std::string& what) {
  const auto found = std::find_if(events.begin(), events.end(), [&](const auto& e) {
    return e.first == event && e.second.find(what) != std::string::npos;
  });
  return found == events.end() ? -1 : found - events.begin();
}

TEST(Overlapped, FirstBucketStartsDuringTheBackwardPass) {
  const Exchanged step = one_step({.bucket_mib = 0.01, .first_bucket_mib = 0.001});
  const ptrdiff_t start = position(step.events, "start", "0");
  const ptrdiff_t first_layer = position(step.events, "ready", "layer.0.attention.self.query.weight");
  ASSERT_GE(start, 0);
  ASSERT_GE(first_layer, 0);
  EXPECT_LT(start, first_layer);
  EXPECT_GT(step.buckets, 3u);
}

TEST(Overlapped, WithoutOverlapBucketsStartAfterTheBackwardPass) {
  const Exchanged foil = one_step({.bucket_mib = 0.01, .first_bucket_mib = 0.001, .overlap = false});
  ASSERT_GE(position(foil.events, "ready", "layer.0.attention.self.query.weight"), 0);
  EXPECT_GT(position(foil.events, "start", "0"),
            position(foil.events, "ready", "layer.0.attention.self.query.weight"));
  const Exchanged one = one_step({.bucket_mib = 25, .first_bucket_mib = 25});
  EXPECT_GT(position(one.events, "start", "0"),
            position(one.events, "ready", "layer.0.attention.self.query.weight"));
}

TEST(Overlapped, BucketsStartInOrder) {
  const Exchanged step = one_step({.bucket_mib = 0.002, .first_bucket_mib = 0.001});
  std::vector<int> starts;
  for (const auto& [event, what] : step.events) {
    if (event == "start") starts.push_back(std::stoi(what));
  }
  ASSERT_EQ(starts.size(), step.buckets);
  EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
}

TEST(Overlapped, SparseRowsMatchTheWholeTableBitForBit) {
  const Exchanged rows = one_step({.sparse_rows = true});
  const Exchanged table = one_step({.sparse_rows = false});
  EXPECT_TRUE(at::equal(rows.grads, table.grads));
  EXPECT_GT(rows.grads.abs().max().item<float>(), 0);
}

TEST(Overlapped, RejectsBucketsOfSizeZero) {
  const auto group = comm::open_alone();
  EXPECT_THROW(Overlapped(*group, std::make_unique<AllReduce>(*group), {.bucket_mib = 0}), ConfigError);
}

}  // namespace
}  // namespace syncopate::parallel
