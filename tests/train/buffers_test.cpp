// What the trainer does with state that is not trained, such as a batch norm's running statistics.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/parallel/engines/local_engine.h"
#include "syncopate/parallel/make.h"
#include "syncopate/parallel/settle.h"
#include "syncopate/train/replica_parts.h"
#include "syncopate/train/trainer.h"
#include "tests/contract/ranks.h"
#include "tests/support/support.h"

namespace syncopate::train {
namespace {

/// Keeps a running mean of what it has seen in training, as a batch norm does, and a count.
class Running : public nn::Model {
 public:
  using nn::Model::parameters;
  std::vector<tensor::NamedTensor> parameters(nn::LayerRange) const override { return {{"w", weight_}}; }
  using nn::Model::buffers;
  std::vector<tensor::NamedTensor> buffers(nn::LayerRange) const override {
    return {{"seen", seen_}, {"calls", calls_}};
  }
  void set_mode(nn::Mode mode) override { training_ = mode.training; }
  int depth() const override { return 1; }
  using nn::Model::forward;
  at::Tensor forward(at::Tensor, const tensor::Batch& batch, nn::LayerRange) override {
    if (training_) {
      before.push_back(seen_.item<double>());
      seen_.mul_(0.5).add_(batch.at("x").mean());
      calls_.add_(1);
      after.push_back(seen_.item<double>());
    } else {
      evaluated_with.push_back(seen_.item<double>());
    }
    return batch.at("x") * weight_;
  }
  tensor::Loss loss(const at::Tensor& output, const tensor::Batch& batch) const override {
    return {output.sum(), batch.size()};
  }
  std::vector<double> before, after, evaluated_with;

 private:
  at::Tensor weight_ = at::ones({1}).set_requires_grad(true);
  at::Tensor seen_ = at::zeros({1}), calls_ = at::zeros({1}, at::kLong);
  bool training_ = false;
};

class NumberedRows : public data::Dataset {
 public:
  int64_t size() const override { return 12; }
  uint64_t fingerprint() const override { return 12; }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    tensor::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());
    batch.fields["x"] = at::tensor(batch.ids, at::kLong).to(at::kFloat) + 1;
    return batch;
  }
};

class NoScore : public Metric {
 public:
  void add(const at::Tensor&, const tensor::Batch&) override {}
  void conclude(comm::Group&, record::EvalRecord&) override {}
};

struct Seen {
  std::vector<double> before, after, evaluated_with;
  double left = 0;  ///< in the buffer, at the end
  int64_t calls = 0;
};

std::vector<Seen> train(int ranks, bool broadcast) {
  std::vector<Seen> all(static_cast<size_t>(ranks));
  auto groups = comm::open_in_process(ranks, test::kPatience);
  test::run_threads(ranks, [&](int rank) {
    comm::Metered group(std::move(groups[static_cast<size_t>(rank)]));
    Running model;
    tensor::FlatParams params(model.parameters());
    const auto optimizer = optim::make_optimizer({.kind = "sgd"}, params);
    parallel::Replica replica{.model = model, .params = params, .optimizer = *optimizer};
    parallel::LocalEngine engine;
    const auto made = parallel::make_strategy({.name = "all-reduce"}, group);
    const auto data = std::make_shared<NumberedRows>();
    data::Loader loader(data, {.global_batch = 6, .workers = ranks, .rank = rank});
    const optim::Schedule schedule({}, 4);
    Listener listener;
    Trainer trainer({.replica = replica,
                     .engine = engine,
                     .strategy = *made.strategy,
                     .mesh = parallel::Mesh::of_replicas(group),
                     .meter = group,
                     .loader = loader,
                     .test = data.get(),
                     .metric = [] { return std::make_unique<NoScore>(); },
                     .schedule = schedule,
                     .listener = listener},
                    {.steps = 4,
                     .eval_every = 100,  // at the end of both epochs all the same
                     .eval_batch = data->size() / ranks,
                     .broadcast_buffers = broadcast,
                     .checkpoint = {},
                     .inputs = {},
                     .environment = {}});
    trainer.run(false);
    const auto buffers = model.buffers();
    all[static_cast<size_t>(rank)] = {.before = model.before,
                                      .after = model.after,
                                      .evaluated_with = model.evaluated_with,
                                      .left = buffers[0].tensor.item<double>(),
                                      .calls = buffers[1].tensor.item<int64_t>()};
  });
  return all;
}

class Buffers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Buffers, testing::Values(2, 3));

TEST_P(Buffers, EvaluatesAndKeepsTheMeanOverRanks) {
  const std::vector<Seen> all = train(GetParam(), false);
  double mean = 0;
  for (const Seen& each : all) mean += each.after.back() / GetParam();
  for (const Seen& each : all) {
    EXPECT_EQ(each.left, all[0].left);
    EXPECT_NEAR(each.left, mean, 1e-5);
    ASSERT_FALSE(each.evaluated_with.empty());
    EXPECT_EQ(each.evaluated_with.back(), each.left);
    EXPECT_EQ(each.calls, 4) << "a count has no mean";
  }
  EXPECT_NE(all[0].after.back(), all[1].after.back()) << "ranks see different examples";
  // Two steps are an epoch, which ends with an evaluation: ranks go on with their own.
  ASSERT_EQ(all[0].evaluated_with.size(), 2u);
  for (const Seen& each : all) EXPECT_EQ(each.before[2], each.after[1]);
  EXPECT_NE(all[0].before[2], all[1].before[2]);
}

TEST_P(Buffers, BroadcastsRankZerosBuffersBeforeEveryStep) {
  const std::vector<Seen> all = train(GetParam(), true);
  for (const Seen& each : all) {
    ASSERT_EQ(each.before.size(), 4u);
    EXPECT_EQ(each.before, all[0].before);
    EXPECT_NE(each.after, std::vector<double>(4, each.after[0]));
  }
  EXPECT_EQ(all[0].before[1], all[0].after[0]);
  EXPECT_NE(all[0].after[0], all[1].after[0]);
  for (const Seen& each : all) {
    EXPECT_EQ(each.left, all[0].after.back()) << "and ends with them";
    EXPECT_EQ(each.evaluated_with.back(), each.left);
  }
}

TEST(BuffersAlone, OneRankKeepsItsOwn) {
  const std::vector<Seen> all = train(1, true);
  EXPECT_EQ(all[0].left, all[0].after.back());
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(all[0].before[i], all[0].after[i - 1]);
}

/// A replica of this rank with its strategy, before the first step.
struct Started {
  Started(const std::string& strategy, comm::Group& group)
      : made(parallel::make_strategy({.name = strategy}, group)) {
    made.strategy->start(replica);
  }
  Running model;
  tensor::FlatParams params{model.parameters()};
  std::unique_ptr<optim::Optimizer> optimizer = optim::make_optimizer({.kind = "sgd"}, params);
  parallel::Replica replica{.model = model, .params = params, .optimizer = *optimizer};
  parallel::MadeStrategy made;
};

/// What is left of buffers that began as (1 + rank, 10 + rank) in a replica of each rank.
std::vector<std::pair<double, int64_t>> settled(int ranks, const std::string& strategy,
                                                parallel::Buffers buffers) {
  std::vector<std::pair<double, int64_t>> left(static_cast<size_t>(ranks));
  test::run_ranks(ranks, [&](comm::Group& group) {
    Started one(strategy, group);
    const auto held = one.model.buffers();
    held[0].tensor.fill_(1 + group.rank());
    held[1].tensor.fill_(10 + group.rank());
    parallel::settle(*one.made.strategy, one.replica, group, buffers);
    left[static_cast<size_t>(group.rank())] = {held[0].tensor.item<double>(), held[1].tensor.item<int64_t>()};
  });
  return left;
}

TEST(SettledBuffers, AreAlikeOnAllRanks) {
  using Left = std::vector<std::pair<double, int64_t>>;
  EXPECT_EQ(settled(3, "all-reduce", parallel::Buffers::kMean), Left(3, {2, 10})) << "a count has no mean";
  EXPECT_EQ(settled(3, "all-reduce", parallel::Buffers::kOfRankZero), Left(3, {1, 10}));
  EXPECT_EQ(settled(1, "all-reduce", parallel::Buffers::kMean), Left(1, {1, 10}));
}

TEST(SettledBuffers, StrategysSettleAloneLeavesThemApart) {
  test::run_ranks(2, [](comm::Group& group) {
    Started one("all-reduce", group);
    one.model.buffers()[1].tensor.fill_(10 + group.rank());
    one.made.strategy->settle(one.replica);
    EXPECT_EQ(one.model.buffers()[1].tensor.item<int64_t>(), 10 + group.rank()) << "the foil";
  });
}

/// Buffers that began as in `settled`, saved by two ranks and restored by so many; `what` they are.
std::vector<std::pair<double, int64_t>> restored_by(int ranks, parallel::Buffers what) {
  const test::TempDir folder;
  std::vector<std::pair<double, int64_t>> left(static_cast<size_t>(ranks));
  for (const int now : {2, ranks}) {
    const bool resumes = now == ranks && std::filesystem::exists(folder / "checkpoint");
    test::run_ranks(now, [&](comm::Group& group) {
      Started one("all-reduce", group);
      ReplicaParts parts(
          {.replica = one.replica, .strategy = *one.made.strategy, .group = group, .buffers = what});
      ValuesPart none(
          "none", [] { return nlohmann::ordered_json(); }, [](const auto&, Resumption&) {});
      const auto held = one.model.buffers();
      if (!resumes) {
        held[0].tensor.fill_(1 + group.rank());
        held[1].tensor.fill_(10 + group.rank());
        save_checkpoint(folder / "checkpoint", group, parts.and_then(none));
        EXPECT_EQ(held[0].tensor.item<double>(), 1 + group.rank()) << "training goes on with its own";
        return;
      }
      restore_checkpoint(folder / "checkpoint", group, parts.and_then(none));
      left[static_cast<size_t>(group.rank())] = {held[0].tensor.item<double>(),
                                                 held[1].tensor.item<int64_t>()};
    });
  }
  return left;
}

TEST(SavedBuffers, AreEachRanksOwnOrOnOtherRanksTheSettledOnes) {
  using Left = std::vector<std::pair<double, int64_t>>;
  EXPECT_EQ(restored_by(2, parallel::Buffers::kMean), (Left{{1, 10}, {2, 11}}));
  EXPECT_EQ(restored_by(3, parallel::Buffers::kMean), Left(3, {1.5, 10}));
  EXPECT_EQ(restored_by(1, parallel::Buffers::kMean), Left(1, {1.5, 10}));
  EXPECT_EQ(restored_by(2, parallel::Buffers::kOfRankZero), (Left{{1, 10}, {2, 11}}));
  EXPECT_EQ(restored_by(3, parallel::Buffers::kOfRankZero), Left(3, {1, 10}));
}

}  // namespace
}  // namespace syncopate::train
