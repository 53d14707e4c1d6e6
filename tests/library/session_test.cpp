#include "syncopate/library/session.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/inproc/inproc.h"
#include "tests/contract/ranks.h"
#include "tests/support/support.h"

// Modules of libtorch, trained as a user of the library would, with ranks as threads.
namespace syncopate::test {
namespace {

using Losses = std::vector<double>;

/// Points of y = sin(x), each a function of its number.
class Sine : public data::Dataset {
 public:
  explicit Sine(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    tensor::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());
    std::vector<float> x;
    for (const int64_t id : ids) x.push_back(static_cast<float>(6 * Rng(mix_key(5, id)).uniform() - 3));
    batch.fields["x"] = at::tensor(x).view({-1, 1});
    batch.fields["y"] = batch.fields["x"].sin();
    return batch;
  }

 private:
  int64_t size_;
};

torch::nn::Sequential net(double dropout = 0.2) {
  return torch::nn::Sequential(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Dropout(dropout),
                               torch::nn::Linear(32, 1));
}

Session::LossFunction squared_error(torch::nn::Sequential of) {
  return [of](const tensor::Batch& batch) {
    return tensor::Loss{(torch::nn::Sequential(of)->forward(batch.at("x")) - batch.at("y")).square().sum(),
                        batch.size()};
  };
}

/// A training loop as a user writes it.
struct Loop {
  SessionOptions options{};
  int ranks = 1;
  int64_t steps = 40;
  int64_t global_batch = 12;
  double dropout = 0.2;
  bool own_forward = false;
  bool with_ids = true;
  std::filesystem::path save{}, resume{};
};

struct Outcome {
  Losses losses;                    ///< rank 0's
  std::vector<at::Tensor> weights;  ///< by rank, at the end
  std::vector<std::string> notes;   ///< of resuming
};

Outcome run(const Loop& loop) {
  Outcome outcome;
  outcome.weights.resize(static_cast<size_t>(loop.ranks));
  auto groups = comm::open_in_process(loop.ranks, kPatience);
  std::vector<torch::nn::Sequential> nets;
  for (int rank = 0; rank < loop.ranks; ++rank) {
    torch::manual_seed(rank + 1);  // ranks begin apart
    nets.push_back(net(loop.dropout));
  }
  run_threads(loop.ranks, [&](int rank) {
    at::set_num_threads(1);
    World world(std::move(groups[static_cast<size_t>(rank)]));
    torch::nn::Sequential& mine = nets[static_cast<size_t>(rank)];
    Session session(mine.ptr(), squared_error(mine), world, loop.options);
    if (session.serves()) return session.serve();
    if (!loop.resume.empty()) {
      const auto notes = session.resume(loop.resume);
      if (rank == 0) outcome.notes = notes;
    }
    auto batches =
        session.batches(std::make_shared<Sine>(70), {.global_batch = loop.global_batch, .seed = 4});
    while (session.steps() < loop.steps) {
      data::StepBatches given = batches.next();
      double loss = 0;
      if (loop.own_forward) {
        tensor::Loss sum{{}, 0};
        if (!given.micro.empty()) {
          const auto region = session.forward(given.micro[0].ids);
          sum = squared_error(mine)(given.micro[0]);
        }
        loss = session.step(sum, 0.01);
      } else {
        if (!loop.with_ids) given.micro[0].ids.clear();
        loss = session.step(given, 0.01);
      }
      if (rank == 0) outcome.losses.push_back(loss);
    }
    if (!loop.save.empty()) session.save(loop.save);
    session.finish();
    outcome.weights[static_cast<size_t>(rank)] = session.replica().params.values.clone();
    session.leave();
  });
  return outcome;
}

double difference(const Losses& a, const Losses& b) {
  check(a.size() == b.size() && !a.empty(), "traces of one length");
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  return largest;
}

void expect_one_model(const Outcome& outcome, size_t workers, const std::string& where) {
  for (size_t rank = 1; rank < workers; ++rank)
    EXPECT_TRUE(at::equal(outcome.weights[rank].cpu(), outcome.weights[0].cpu()))
        << where << " rank " << rank;
}

TEST(Session, ModuleWithDropoutDoesNotDependOnTheNumberOfWorkers) {
  const Outcome one = run({});
  for (const int ranks : {2, 3}) {
    for (const char* strategy : {"ddp", "all-reduce", "gather-scatter"}) {
      const Outcome many = run({.options = {.strategy = strategy}, .ranks = ranks});
      EXPECT_LT(difference(one.losses, many.losses), 1e-6) << strategy << ranks;
      expect_one_model(many, static_cast<size_t>(ranks), strategy);
    }
  }
  EXPECT_GT(difference(one.losses, run({.ranks = 2, .with_ids = false}).losses), 1e-3)
      << "without ids noise cannot follow the example";
  EXPECT_GT(difference(one.losses, run({.dropout = 0}).losses), 1e-3);
  // Batches of two for three workers: one of them has none.
  EXPECT_LT(difference(run({.steps = 12, .global_batch = 2}).losses,
                       run({.ranks = 3, .steps = 12, .global_batch = 2}).losses),
            1e-6);
}

TEST(Cuda, SessionTrainsOnTheGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a CUDA device";
  const Outcome host = run({.ranks = 2, .dropout = 0});
  const Outcome device = run({.options = {.device = "cuda"}, .ranks = 2, .dropout = 0, .own_forward = false});
  EXPECT_LT(difference(host.losses, device.losses), 1e-3);
  expect_one_model(device, 2, "cuda");
  const Outcome noisy = run({.options = {.precision = "bf16", .device = "cuda"}, .ranks = 2});
  EXPECT_NE(noisy.losses, device.losses);
  EXPECT_LT(noisy.losses.back(), noisy.losses.front());
}

/// It starts near 1; a step's own batch says little.
double mean_of_last(const Losses& losses) {
  return std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20;
}

TEST(Session, EveryStrategyTrains) {
  EXPECT_GT(mean_of_last(run({.steps = 20, .dropout = 0}).losses), 0.15) << "the foil trains too little";
  for (const std::string name : {"ddp", "all-reduce", "gather-scatter", "data-parallel", "local-sgd",
                                 "diloco", "hogwild", "parameter-server"}) {
    const bool servers = name == "parameter-server";
    Loop loop{.options = {.strategy = name, .clip = 5}, .ranks = servers ? 3 : 2, .steps = 150, .dropout = 0};
    const Outcome outcome = run(loop);
    EXPECT_LT(mean_of_last(outcome.losses), 0.15) << name;
    expect_one_model(outcome, 2, name);
  }
  for (const char* codec : {"int8", "power-sgd", "one-bit"}) {
    const Outcome outcome =
        run({.options = {.strategy = "all-reduce",
                         .codec = parallel::CompressionOptions{.codec = codec, .rank = 1}},
             .ranks = 2,
             .steps = 150,
             .dropout = 0});
    EXPECT_LT(mean_of_last(outcome.losses), 0.15) << codec;
  }
}

TEST(Session, OwnForwardPassIsTheSameStep) {
  const Outcome reference = run({.ranks = 2});
  const Outcome own = run({.ranks = 2, .own_forward = true});
  EXPECT_EQ(own.losses, reference.losses);
  EXPECT_TRUE(at::equal(own.weights[1], reference.weights[1]));
  EXPECT_NE(run({.options = {.seed = 1}, .ranks = 2, .own_forward = true}).losses, reference.losses)
      << "dropout of another seed";
}

TEST(Session, EvaluationInBetweenChangesNothing) {
  for (const char* strategy : {"ddp", "local-sgd"}) {
    std::vector<Losses> losses(2);
    for (const bool looks : {false, true}) {
      auto groups = comm::open_in_process(2, kPatience);
      std::vector<torch::nn::Sequential> nets;
      for (int rank = 0; rank < 2; ++rank) {
        torch::manual_seed(rank + 1);
        nets.push_back(net(0.5));
      }
      run_threads(2, [&](int rank) {
        World world(std::move(groups[static_cast<size_t>(rank)]));
        torch::nn::Sequential& mine = nets[static_cast<size_t>(rank)];
        mine[1]->eval();  // its owner's choice, which stays
        Session session(mine.ptr(), world, {.strategy = strategy});
        auto batches = session.batches(std::make_shared<Sine>(70), {.global_batch = 12});
        for (int step = 0; step < 12; ++step) {
          const tensor::Batch batch = batches.next().micro[0];
          tensor::Loss loss;
          {
            const auto region = session.forward(batch.ids);
            loss = squared_error(mine)(batch);
          }
          const double mean = session.step(loss, 0.01);
          if (rank == 0) losses[looks ? 1 : 0].push_back(mean);
          if (!looks) continue;
          session.with_model([&] { EXPECT_FALSE(mine[2]->is_training()); });
          EXPECT_TRUE(mine[2]->is_training()) << "dropout is on again";
          EXPECT_FALSE(mine[1]->is_training());
        }
        EXPECT_THROW(session.with_model([] { throw DataError("no"); }), DataError);
        EXPECT_TRUE(mine[2]->is_training());
        session.leave();
      });
    }
    EXPECT_EQ(losses[0], losses[1]) << strategy;
  }
}

TEST(Session, BatchesAreThoseOfTheNextStep) {
  const TempDir folder;
  World world(std::move(comm::open_in_process(1, kPatience)[0]));
  run({.steps = 5, .save = folder / "five"});
  auto mine = net();
  Session session(mine.ptr(), squared_error(mine), world);
  auto batches = session.batches(std::make_shared<Sine>(70), {.global_batch = 12, .seed = 4});
  const auto first = batches.next().micro[0].ids;
  EXPECT_EQ(batches.next().micro[0].ids, first) << "not used: it comes again";
  session.resume(folder / "five");
  EXPECT_EQ(batches.next().step, 5);
  EXPECT_EQ(session.steps(), 5);
}

TEST(Session, MicroBatchesWithoutIdsHaveNoiseOfTheirOwn) {
  World world(std::move(comm::open_in_process(1, kPatience)[0]));
  auto mine = net(0.5);
  std::vector<at::Tensor> seen;
  Session session(
      mine.ptr(),
      [&](const tensor::Batch& batch) {
        seen.push_back(mine[2]->as<torch::nn::Dropout>()->forward(at::ones({4, 32})));
        return squared_error(mine)(batch);
      },
      world);
  tensor::Batch batch = Sine(4).collate(std::vector<int64_t>{0, 1, 2, 3}, 0);
  batch.ids.clear();
  session.step(std::vector<tensor::Batch>{batch, batch}, 0.01);
  EXPECT_FALSE(at::equal(seen[0], seen[1]));
}

/// A table of which a batch reads a few rows; ranks exchange those alone.
class Table : public nn::Model {
 public:
  using nn::Model::parameters;
  std::vector<tensor::NamedTensor> parameters(nn::LayerRange) const override { return {{"table", table_}}; }
  void set_mode(nn::Mode) override {}
  int depth() const override { return 1; }
  using nn::Model::forward;
  at::Tensor forward(at::Tensor, const tensor::Batch& batch, nn::LayerRange) override {
    return at::embedding(table_, batch.at("rows"));
  }
  tensor::Loss loss(const at::Tensor& output, const tensor::Batch& batch) const override {
    return {output.square().sum(), batch.size()};
  }
  std::vector<at::Tensor> row_tables() const override { return {table_}; }
  std::vector<tensor::RowUse> rows_used(const tensor::Batch& batch) const override {
    return {{table_, batch.at("rows")}};
  }

 private:
  at::Tensor table_ = at::arange(20, at::kFloat).view({10, 2}).set_requires_grad(true);
};

TEST(Session, LossesOfOnesOwnReachAllRowsOfATable) {
  std::vector<at::Tensor> given(2), computed(2);
  for (const bool own : {true, false}) {
    auto groups = comm::open_in_process(2, kPatience);
    run_threads(2, [&](int rank) {
      World world(std::move(groups[static_cast<size_t>(rank)]));
      Table table;
      Session session(table, world, {.strategy = "ddp"});
      tensor::Batch batch;
      batch.ids = {rank};
      batch.fields["rows"] = at::full({1}, 3 + 4 * rank, at::kLong);
      for (int step = 0; step < 3; ++step) {
        if (own) {
          session.step(table.loss(table.forward(batch), batch), 0.1);
        } else {
          session.step(batch, 0.1);
        }
      }
      (own ? given : computed)[static_cast<size_t>(rank)] = session.replica().params.values.clone();
      session.leave();
    });
  }
  EXPECT_TRUE(at::equal(given[0], given[1])) << "replicas are one model";
  EXPECT_TRUE(at::equal(given[0], computed[0]));
}

/// The losses of `loop` up to `at` steps on one count of ranks, and from there on another.
Losses resized(Loop loop, const std::filesystem::path& path, int ranks_now, int64_t at,
               std::vector<std::string>* notes = nullptr) {
  Loop second = loop;
  loop.steps = at;
  loop.save = second.resume = path;
  second.ranks = ranks_now;
  Losses losses = run(loop).losses;
  const Outcome rest = run(second);
  if (notes != nullptr) *notes = rest.notes;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  return losses;
}

TEST(Session, ResumesBitForBitAndOnAnotherNumberOfWorkers) {
  const TempDir folder;
  const auto path = folder / "session.safetensors";
  for (const char* strategy : {"ddp", "local-sgd", "diloco"}) {
    const Loop straight{.options = {.strategy = strategy, .codec = "int8"}, .ranks = 2};
    const Losses reference = run(straight).losses;
    EXPECT_EQ(resized(straight, path, 2, 17), reference) << strategy;
    Loop foil = straight;
    foil.options.seed = 1;
    EXPECT_NE(run(foil).losses, reference) << strategy;
  }
  const Losses one = run({}).losses;
  std::vector<std::string> notes;
  EXPECT_LT(difference(resized({.ranks = 1}, path, 3, 17, &notes), one), 1e-6);
  EXPECT_EQ(notes, std::vector<std::string>{"workers were 1 and are 3 now"});
  EXPECT_LT(difference(resized({.ranks = 3}, path, 2, 17), one), 1e-6);
  EXPECT_GT(difference(resized({.ranks = 1, .global_batch = 6}, path, 2, 17), one), 1e-3);

  resized({.options = {.codec = "int8"}, .ranks = 2}, path, 3, 17, &notes);
  EXPECT_NE(std::find(notes.begin(), notes.end(), "error-feedback residuals were dropped"), notes.end());
  // Free-running ranks may have trained the model before rank 0 makes its first step: its own first loss is
  // no measure of the start.
  const double untrained = run({.steps = 1, .dropout = 0}).losses.front();
  for (const char* strategy : {"hogwild", "local-sgd", "diloco", "parameter-server"}) {
    const Losses losses = resized({.options = {.strategy = strategy}, .ranks = 2, .dropout = 0}, path, 3, 20);
    ASSERT_FALSE(losses.empty()) << strategy;
    EXPECT_LT(losses.back(), untrained) << strategy;
  }
}

/// Every gradient counts twice: a strategy of one's own that is easily told from others.
class Doubling : public parallel::Strategy {
 public:
  void start(parallel::Replica&) override {}
  parallel::Update step(parallel::Replica& replica, const parallel::StepContext& context) override {
    replica.params.grads.mul_(2);
    return replica.apply(context);
  }
};

/// Steps by the sign of the gradient, smaller ones with the number of steps, which it keeps in a tensor.
class SignOptimizer : public optim::Optimizer {
 public:
  void step(tensor::FlatParams& params, double lr, double) override {
    const at::NoGradGuard no_grad;
    calls_.add_(1);
    params.values.sub_(params.grads.sign(), lr / calls_.item<double>());
    ++steps_;
  }
  std::vector<tensor::NamedTensor> state() const override { return {{"calls", calls_}}; }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 private:
  int64_t steps_ = 0;
  at::Tensor calls_ = at::zeros({1}, at::kDouble);
};

TEST(Session, TakesPartsOfOnesOwn) {
  const optim::OptimizerOptions sgd{.kind = "sgd", .weight_decay = 0, .momentum = 0};
  const Outcome plain = run({.options = {.optimizer = sgd}});
  const Outcome doubled = run({.options = {.strategy = std::make_shared<Doubling>(), .optimizer = sgd}});
  EXPECT_EQ(doubled.losses[0], plain.losses[0]);
  EXPECT_NE(doubled.losses[1], plain.losses[1]);

  const auto own_codec = [] { return codec::make_codec({.name = "int4"}); };
  EXPECT_EQ(run({.options = {.codec = own_codec}, .ranks = 2}).losses,
            run({.options = {.codec = "int4"}, .ranks = 2}).losses);
  EXPECT_NE(run({.options = {.codec = "int8"}, .ranks = 2}).losses,
            run({.options = {.codec = "int4"}, .ranks = 2}).losses);

  const auto signs = [](const tensor::FlatParams&) { return std::make_unique<SignOptimizer>(); };
  const Loop by_signs{.options = {.optimizer = signs}, .ranks = 2};
  EXPECT_NE(run(by_signs).losses, plain.losses);
  const TempDir folder;
  EXPECT_EQ(resized(by_signs, folder / "signs", 2, 17), run(by_signs).losses) << "its state is saved";
}

class Settling : public testing::TestWithParam<std::tuple<parallel::Buffers, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Buffers, Settling,
                         testing::Combine(testing::Values(parallel::Buffers::kMean,
                                                          parallel::Buffers::kOfRankZero),
                                          testing::Values("ddp", "local-sgd")));

TEST_P(Settling, FinishMakesOneModelOfBatchNormsToo) {
  const auto& [kept, strategy] = GetParam();
  const TempDir folder;
  std::vector<at::Tensor> before(3), after(3), counts(3), again(3);
  auto groups = comm::open_in_process(3, kPatience);
  run_threads(3, [&](int number) {
    const auto rank = static_cast<size_t>(number);
    World world(std::move(groups[rank]));
    torch::nn::BatchNorm1d norm(2);
    Session session(norm.ptr(), world,
                    {.strategy = std::get<1>(GetParam()), .buffers = std::get<0>(GetParam())});
    for (int step = 0; step < 3; ++step) {
      // Ranks see other numbers, and rank 2 nothing at all in the last step.
      const bool idle = rank == 2 && step == 2;
      const at::Tensor x = at::arange(8, at::kFloat).view({4, 2}).mul(number + 1).add(step);
      session.step(idle ? tensor::Loss{{}, 0} : tensor::Loss{norm->forward(x).square().sum(), 4}, 0.1);
    }
    before[rank] = norm->running_mean.clone();
    session.save(folder / "norm");
    EXPECT_TRUE(at::equal(norm->running_mean, before[rank])) << "saving leaves training as it was";
    session.with_model([&] { again[rank] = norm->running_mean.clone(); });
    EXPECT_TRUE(at::equal(norm->running_mean, before[rank])) << "training goes on with its own";
    session.finish();
    after[rank] = norm->running_mean.clone();
    counts[rank] = norm->num_batches_tracked.clone();
    session.leave();
  });
  EXPECT_FALSE(at::equal(before[0], before[1])) << "they differ while training";
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(at::equal(after[rank], after[0])) << rank;
    EXPECT_TRUE(at::equal(again[rank], after[0])) << rank;
    EXPECT_TRUE(at::equal(counts[rank], counts[0])) << rank;
  }
  at::Tensor mean = (before[0] + before[1] + before[2]) / 3;
  // Local SGD weighs by examples: 12, 12 and 8.
  if (std::string(strategy) == "local-sgd") mean = (before[0] * 12 + before[1] * 12 + before[2] * 8) / 32;
  EXPECT_TRUE(at::allclose(after[0], kept == parallel::Buffers::kMean ? mean : before[0], 1e-6));
}

TEST(Session, FrozenParametersAreRankZerosAndStay) {
  std::vector<at::Tensor> frozen(2);
  at::Tensor first;
  auto groups = comm::open_in_process(2, kPatience);
  std::vector<torch::nn::Sequential> nets;
  for (int rank = 0; rank < 2; ++rank) {
    torch::manual_seed(rank + 1);
    nets.push_back(net(0));
    nets.back()->parameters()[0].set_requires_grad(false);
  }
  first = nets[0]->parameters()[0].clone();
  ASSERT_FALSE(at::equal(first, nets[1]->parameters()[0]));
  run_threads(2, [&](int rank) {
    World world(std::move(groups[static_cast<size_t>(rank)]));
    torch::nn::Sequential& mine = nets[static_cast<size_t>(rank)];
    Session session(mine.ptr(), squared_error(mine), world, {.strategy = "local-sgd"});
    auto batches = session.batches(std::make_shared<Sine>(70), {.global_batch = 12});
    for (int step = 0; step < 20; ++step) session.step(batches.next(), 0.01);
    session.finish();
    frozen[static_cast<size_t>(rank)] = mine->parameters()[0].clone();
    session.leave();
  });
  for (const at::Tensor& each : frozen) EXPECT_TRUE(at::equal(each, first));
}

struct Tied : torch::nn::Module {
  Tied() : first(register_module("first", torch::nn::Linear(3, 3))), again(register_module("again", first)) {
    other = register_parameter("other", first->weight);
  }
  at::Tensor forward(const at::Tensor& x) { return first->forward(at::linear(x, other)); }
  torch::nn::Linear first, again;
  at::Tensor other;
};

TEST(Session, TiedParametersAreOne) {
  torch::manual_seed(2);
  auto tied = std::make_shared<Tied>();
  auto apart = std::make_shared<Tied>();
  const at::Tensor x = at::ones({4, 3});
  World world(std::move(comm::open_in_process(1, kPatience)[0]));
  Session session(std::static_pointer_cast<torch::nn::Module>(tied), world);
  for (int step = 0; step < 3; ++step) session.step(tied->forward(x).square().mean(), 0.1);
  EXPECT_TRUE(tied->first->weight.is_same(tied->other));
  EXPECT_EQ(session.replica().params.entries().size(), 2u) << "a weight and a bias";
  EXPECT_FALSE(at::equal(tied->first->weight, apart->first->weight));
}

/// What every rank throws when it does this; empty: nothing.
std::vector<std::string> complaints(int ranks, const std::function<void(World&)>& train) {
  std::vector<std::string> said(static_cast<size_t>(ranks));
  auto groups = comm::open_in_process(ranks, kPatience);
  run_threads(ranks, [&](int rank) {
    World world(std::move(groups[static_cast<size_t>(rank)]));
    try {
      train(world);
    } catch (const Error& error) {
      said[static_cast<size_t>(rank)] = error.what();
    }
  });
  return said;
}

/// Every rank says the same sentence, and `words` are in it.
void expect_complaint(const std::vector<std::string>& said, const std::vector<std::string>& words) {
  for (const std::string& sentence : said) {
    EXPECT_EQ(sentence, said[0]);
    for (const std::string& word : words)
      EXPECT_NE(sentence.find(word), std::string::npos) << word << " in: " << sentence;
  }
}

TEST(SessionMistakes, AStepThatFailedCanBeMadeAgain) {
  World world(std::move(comm::open_in_process(1, kPatience)[0]));
  torch::nn::Linear linear(1, 1);
  Session session(linear.ptr(), world);
  EXPECT_THROW(session.step(linear->forward(at::ones({1, 1})).sum().log() * 0 / 0, 0.1), DivergedError);
  EXPECT_THROW(session.step(tensor::Loss{{}, 0}, 0.1), DataError);
  const at::Tensor before = linear->weight.clone();
  session.step(linear->forward(at::ones({1, 1})).sum(), 0.1);
  EXPECT_FALSE(at::equal(linear->weight, before));
}

TEST(SessionMistakes, AreSaidOnEveryRank) {
  struct Empty : torch::nn::Module {};
  expect_complaint(complaints(2, [](World& world) { Session(std::make_shared<Empty>(), world); }),
                   {"no parameters"});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Sequential mixed(torch::nn::Linear(1, 1), torch::nn::Linear(1, 1));
                                mixed[1]->to(torch::kDouble);
                                Session(mixed.ptr(), world);
                              }),
                   {"one floating type", "0.weight is Float", "1.weight is Double"});
  expect_complaint(complaints(3,
                              [](World& world) {
                                torch::nn::Linear linear(world.rank() == 2 ? 4 : 3, 1);
                                Session(linear.ptr(), world);
                              }),
                   {"ranks differ", "rank 0 has the parameter weight [1, 3]", "rank 2 has", "[1, 4]"});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world, {.strategy = "dpp"});
                              }),
                   {"unknown strategy \"dpp\"", "ddp"});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world, {.codec = world.rank() == 1 ? "int8" : "int4"});
                              }),
                   {"ranks differ", "int4", "int8"});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world, {.strategy = "gather-scatter", .codec = "int8"});
                              }),
                   {"gather-scatter cannot use a codec"});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world, {.strategy = "parameter-server", .servers = 2});
                              }),
                   {"servers must be 1 or more and leave at least one of the 2 ranks"});
  // On one rank alone, the others hear of it all the same.
  expect_complaint(complaints(3,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world, {.strategy = world.rank() == 1 ? "dpp" : "ddp"});
                              }),
                   {"unknown strategy \"dpp\""});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                parallel::StrategyOptions local{.name = "local-sgd"};
                                local.local.rounds.every = world.rank() + 4;
                                Session(linear.ptr(), world, {.strategy = local});
                              }),
                   {"ranks differ", "every 4", "every 5"});
  expect_complaint(complaints(2,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world,
                                        {.strategy = world.rank() == 0 ? "ddp" : "parameter-server"});
                              }),
                   {"ranks differ", "parameter-server"});
  expect_complaint(complaints(1,
                              [](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world,
                                        {.strategy = std::make_shared<Doubling>(), .codec = "int8"});
                              }),
                   {"brings its codec"});
}

TEST(SessionMistakes, UnusedParametersAreNamedUnlessAllowed) {
  const auto train = [](World& world, bool allowed) {
    torch::nn::Sequential used(torch::nn::Linear(1, 1), torch::nn::Linear(1, 1));
    Session session(used.ptr(), world, {.allow_unused = allowed});
    for (int step = 0; step < 2; ++step)
      session.step(used[0]->as<torch::nn::Linear>()->forward(at::ones({2, 1})).square().mean(), 0.1);
  };
  expect_complaint(complaints(2, [&](World& world) { train(world, false); }), {"1.bias got no gradient"});
  EXPECT_EQ(complaints(2, [&](World& world) { train(world, true); }), (std::vector<std::string>{"", ""}));
}

TEST(SessionMistakes, CheckpointsOfAnotherModelOrOtherOptions) {
  const TempDir folder;
  const auto path = folder / "session.safetensors";
  run({.steps = 2, .save = path});
  expect_complaint(complaints(2,
                              [&](World& world) {
                                torch::nn::Linear linear(1, 1);
                                Session(linear.ptr(), world).resume(path);
                              }),
                   {"does not fit", "weight"});
  expect_complaint(complaints(2,
                              [&](World& world) {
                                auto same = net();
                                Session(same.ptr(), world, {.optimizer = "adamw", .seed = 7}).resume(path);
                              }),
                   {"seed was 0 and is 7 now"});
  expect_complaint(
      complaints(2,
                 [&](World& world) {
                   auto same = net();
                   Session session(same.ptr(), world, {.codec = "int8"});
                   const at::Tensor before = same->parameters()[0].clone();
                   EXPECT_THROW(session.resume(path), Error);
                   EXPECT_TRUE(at::equal(same->parameters()[0], before)) << "nothing was written";
                   try {
                     session.finish();
                   } catch (const ConfigError& error) {
                     EXPECT_NE(std::string(error.what()).find("could not resume"), std::string::npos);
                   }
                   session.leave();
                   session.finish();
                 }),
      {"has been left"});
  expect_complaint(complaints(1,
                              [&](World& world) {
                                auto same = net();
                                same->to(torch::kDouble);
                                Session(same.ptr(), world).resume(path);
                              }),
                   {"does not fit"});
  expect_complaint(complaints(2,
                              [&](World& world) {
                                auto same = net();
                                Session(same.ptr(), world).resume(folder / "nothing");
                              }),
                   {"no checkpoint at"});
}

TEST(SessionMistakes, SharedMemoryIsRefused) {
  expect_complaint(complaints(1,
                              [](World& world) {
                                struct Views : torch::nn::Module {
                                  Views() {
                                    const at::Tensor whole = at::zeros({4});
                                    register_parameter("a", whole.narrow(0, 0, 3));
                                    register_parameter("b", whole.narrow(0, 2, 2));
                                  }
                                };
                                Session(std::make_shared<Views>(), world);
                              }),
                   {"a and b share memory"});
}

TEST(SessionMistakes, LossesAndGradientsThatCannotBe) {
  const auto with_linear = [](const std::function<void(Session&, torch::nn::Linear&)>& use) {
    return complaints(1, [&](World& world) {
      torch::nn::Linear linear(1, 1);
      Session session(linear.ptr(), world);
      use(session, linear);
    });
  };
  expect_complaint(with_linear([](Session& session, torch::nn::Linear&) { session.step(at::ones({}), 0.1); }),
                   {"a number without a gradient"});
  expect_complaint(with_linear([](Session& session, torch::nn::Linear& linear) {
                     session.step(linear->forward(at::ones({2, 1})), 0.1);
                   }),
                   {"2 numbers"});
  expect_complaint(with_linear([](Session& session, torch::nn::Linear& linear) {
                     session.step(linear->forward(at::ones({1, 1})).sum(), 0.1);
                     linear->weight.mutable_grad().reset();
                     session.step(linear->forward(at::ones({1, 1})).sum(), 0.1);
                   }),
                   {"weight or its gradient was moved", "zero_grad"});
  expect_complaint(with_linear([](Session& session, torch::nn::Linear& linear) {
                     session.step(linear->forward(at::ones({1, 1})).sum().log() * 0 / 0, 0.1);
                   }),
                   {"not a number"});
  expect_complaint(with_linear([](Session& session, torch::nn::Linear&) {
                     torch::nn::Linear another(1, 1);
                     session.step(another->forward(at::ones({1, 1})).sum(), 0.1);
                   }),
                   {"no parameter got a gradient", "session's own module"});
  expect_complaint(
      with_linear([](Session& session, torch::nn::Linear&) { session.step(tensor::Batch(), 0.1); }),
      {"without a loss function"});
  expect_complaint(with_linear([](Session& session, torch::nn::Linear&) { session.serve(); }), {"trains"});
  expect_complaint(with_linear([](Session& session, torch::nn::Linear&) {
                     session.leave();
                     session.finish();
                   }),
                   {"has been left"});
}

}  // namespace
}  // namespace syncopate::test
