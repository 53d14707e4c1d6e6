// A run that resumes on another number of workers: what goes on as if nothing had happened, what begins anew
// and what is refused.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/train/checkpoint.h"
#include "tests/laws/rig.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

Rig resized_rig(const std::string& strategy) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.optim.lr = 3e-3;
  rig.optim.eps = 1e-6;  // Adam makes steps of the rounding where a gradient is zero
  rig.optim.clip = 1;
  rig.dropout = 0.1;
  rig.steps = 20;
  rig.eval_every = 1000;
  return rig;
}

/// `rig` in parts of five steps, each on another number of workers; `between` may change the checkpoint.
std::vector<double> in_parts(Rig rig, const std::vector<int>& workers,
                             const std::function<void(const std::filesystem::path&)>& between = {}) {
  const TempDir folder;
  rig.checkpoint = folder / "checkpoint.safetensors";
  std::vector<double> losses;
  for (size_t part = 0; part < workers.size(); ++part) {
    rig.workers = workers[part];
    rig.resume = part > 0;
    rig.stop_after = part + 1 < workers.size() ? 5 : 0;
    const Trace trace = train(rig);
    losses.insert(losses.end(), trace.losses.begin(), trace.losses.end());
    if (between) between(rig.checkpoint);
  }
  return losses;
}

/// A checkpoint of `rig` on two workers, stopped in step `stop` (0: at its end), and where it is.
struct Stopped {
  TempDir folder;
  Rig rig;
  Trace before;
  explicit Stopped(Rig straight, int64_t stop, int workers = 2) : rig(std::move(straight)) {
    rig.checkpoint = folder / "checkpoint.safetensors";
    rig.workers = workers;
    rig.save_every = stop;
    rig.stop_after = stop;
    before = train(rig);
    rig.stop_after = 0;
    rig.resume = true;
  }
  Trace resumed(int workers) {
    rig.workers = workers;
    return train(rig);
  }
};

bool says(const Trace& trace, const std::string& what) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

TEST(Resized, SynchronousRunsGoOnAsIfNothingHadHappened) {
  const auto forget_moments = [](const std::filesystem::path& path) {
    train::Checkpoint forgetful = train::load_checkpoint(path);
    for (auto& [name, tensor] : forgetful.tensors) {
      if (name.find(".exp_avg") != std::string::npos) tensor.zero_();
    }
    train::save_checkpoint(path, forgetful);
  };
  for (const std::string strategy : {"ddp", "all-reduce", "gather-scatter", "parameter-server"}) {
    Rig rig = resized_rig(strategy);
    rig.strategy.staleness = "0";  // its servers sum the gradients of all workers
    const Trace straight = train(rig);
    ASSERT_EQ(straight.losses.size(), 20u);
    EXPECT_LT(difference(straight.losses, in_parts(rig, {1, 2, 4, 1})), 1e-6) << strategy;
    EXPECT_GT(difference(straight.losses, in_parts(rig, {1, 2, 4, 1}, forget_moments)), 1e-4) << strategy;
  }
}

TEST(Resized, TellsWhatChanged) {
  Stopped run(resized_rig("ddp"), 5, 1);
  const Trace after = run.resumed(2);
  EXPECT_EQ(after.notes, std::vector<std::string>{"workers were 1 and are 2 now: same global batches of 12"});
  EXPECT_EQ(after.start_hash, run.before.start_hash) << "the start of the whole run";
  Stopped same(resized_rig("ddp"), 5, 2);
  EXPECT_TRUE(same.resumed(2).notes.empty()) << "the foil is on as many";
}

TEST(Resized, WorkersThatDifferStartFromTheSettledModel) {
  for (const std::string strategy : {"local-sgd", "diloco"}) {
    Rig rig = resized_rig(strategy);
    rig.strategy.every = 4;
    Stopped run(rig, 6);  // between two averages
    const at::Tensor settled = saved_parameters(run.rig.checkpoint);
    EXPECT_TRUE(at::equal(settled, run.before.saved.back().second));
    // No further step: what it begins with is what it ends with.
    Rig at_once = run.rig;
    at_once.workers = 3;
    at_once.steps = 6;
    const Trace begun = train(at_once);
    for (const at::Tensor& parameters : begun.parameters)
      EXPECT_LT((parameters - settled).abs().max().item<double>(), 1e-6) << strategy;
    EXPECT_NEAR(evaluate_parameters(begun.parameters[0], 1).loss, evaluate_parameters(settled, 1).loss, 1e-6);
    const Trace after = run.resumed(3);
    EXPECT_EQ(after.losses.size(), 14u);
    EXPECT_TRUE(says(after, "every worker starts from the one model that was evaluated")) << strategy;
    EXPECT_TRUE(says(after, "every worker's optimizer starts from the mean of what they had")) << strategy;
    EXPECT_EQ(says(after, "outer momentum was kept"), strategy == "diloco");
    EXPECT_TRUE(std::isfinite(after.losses.back()));
  }
}

TEST(Resized, OuterMomentumIsKept) {
  Rig rig = resized_rig("diloco");
  rig.strategy.every = 2;
  Stopped run(rig, 6);
  const std::string saved = read_text(run.rig.checkpoint);
  const Trace after = run.resumed(1);
  write_text(run.rig.checkpoint, saved);
  train::Checkpoint forgetful = train::load_checkpoint(run.rig.checkpoint);
  int forgotten = 0;
  for (auto& [name, tensor] : forgetful.tensors) {
    if (!name.starts_with("strategy.momentum.")) continue;
    EXPECT_GT(tensor.abs().max().item<double>(), 0) << name;
    tensor.zero_();
    ++forgotten;
  }
  EXPECT_GT(forgotten, 10);
  train::save_checkpoint(run.rig.checkpoint, forgetful);
  EXPECT_NE(run.resumed(1).losses, after.losses);
}

TEST(Resized, MomentsAreTheMeanOfTheWorkers) {
  Rig rig = resized_rig("local-sgd");
  rig.strategy.every = 4;
  Stopped run(rig, 6);
  const auto moment = [&](const train::Checkpoint& checkpoint, const std::string& name) {
    for (const auto& [found, tensor] : checkpoint.tensors) {
      if (found == name + "optimizer.exp_avg.classifier.weight") return tensor;
    }
    return at::Tensor();
  };
  const train::Checkpoint before = train::load_checkpoint(run.rig.checkpoint);
  ASSERT_TRUE(moment(before, "rank0.").defined() && moment(before, "rank1.").defined());
  EXPECT_FALSE(at::equal(moment(before, "rank0."), moment(before, "rank1.")));
  run.rig.steps = 7;
  run.rig.save_every = 0;
  run.rig.optim.lr = 0;
  run.rig.optim.warmup = 0;
  run.rig.optim.beta1 = 1 - 1e-12;  // so that the next gradient leaves the moments as they are
  run.resumed(1);
  const train::Checkpoint after = train::load_checkpoint(run.rig.checkpoint);
  const at::Tensor mean = (moment(before, "rank0.") + moment(before, "rank1.")) / 2;
  ASSERT_TRUE(moment(after, "").defined());
  EXPECT_TRUE(at::allclose(moment(after, ""), mean, 1e-5, 1e-7));
  EXPECT_FALSE(at::allclose(moment(before, "rank0."), mean, 1e-5, 1e-7)) << "the foil: one worker's own";
}

TEST(Resized, CodecsDropWhatTheyHadNotSent) {
  for (const std::string codec : {"int8", "power-sgd", "one-bit"}) {
    Rig rig = resized_rig("ddp");
    rig.codec.name = codec;
    rig.codec.rank = 2;
    rig.codec.warmup = 2;
    Stopped run(rig, 6);
    const Trace after = run.resumed(3);
    EXPECT_EQ(after.losses.size(), 14u) << codec;
    EXPECT_TRUE(says(after, "error-feedback residuals were dropped")) << codec;
    EXPECT_EQ(says(after, "the factors of power-sgd were kept"), codec == "power-sgd");
    for (const at::Tensor& parameters : after.parameters)
      EXPECT_TRUE(at::equal(parameters, after.parameters[0])) << codec;
    EXPECT_LT(after.losses.back(), 3) << codec;
  }
}

TEST(Resized, ExchangesUnderWayAreRefused) {
  for (const auto& [strategy, stop, refused] :
       {std::tuple{"local-sgd", 5, true}, std::tuple{"diloco", 5, true}, std::tuple{"diloco", 7, false}}) {
    Rig rig = resized_rig(strategy);
    rig.strategy.every = 4;
    rig.strategy.delay = 2;  // of the average of step 4 until step 6
    Stopped run(rig, stop);
    const std::string saved = read_text(run.rig.checkpoint);
    std::string said;
    try {
      run.resumed(3);
    } catch (const ConfigError& error) {
      said = error.what();
    }
    EXPECT_EQ(said.find("resume with 2 workers") != std::string::npos, refused) << strategy << stop << said;
    write_text(run.rig.checkpoint, saved);
    EXPECT_EQ(run.resumed(2).losses.size(), static_cast<size_t>(20 - stop)) << "as many go on";
  }
}

TEST(Resized, FreeWorkersGoOnWithinTheEpoch) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    for (const auto& [from, to] : {std::pair{2, 4}, {4, 2}, {2, 3}}) {
      Rig rig = resized_rig(strategy);
      rig.examples = 72;
      rig.steps = 18;  // three epochs of six
      Stopped run(rig, 4, from);
      const auto done = static_cast<int64_t>(run.before.losses.size());
      ASSERT_GT(done, 0);
      ASSERT_LT(done, 6 * from) << "within the first epoch";
      run.rig.save_every = 0;
      const Trace after = run.resumed(to);
      const int64_t seen = done * (12 / from), batch = 12 / to;  // examples, over all epochs
      EXPECT_EQ(static_cast<int64_t>(after.losses.size()), 18 * to - seen / batch) << strategy << from << to;
      EXPECT_TRUE(says(after, "staleness is counted anew"));
      EXPECT_EQ(says(after, "of the epoch repeat"), seen % batch > 0) << strategy << from << to;
      EXPECT_TRUE(says(after, "updates of " + std::to_string(batch)));
      EXPECT_EQ(says(after, "the server's optimizer was kept"), strategy == "parameter-server");
      EXPECT_EQ(after.updates.size(), static_cast<size_t>(std::max(from, to)));
      EXPECT_EQ(after.staleness.size(), static_cast<size_t>(to));
    }
  }
}

TEST(Resized, HogwildStartsFromTheSharedModel) {
  Rig rig = resized_rig("hogwild");
  rig.steps = 4;
  Stopped run(rig, 0);
  const at::Tensor shared = saved_parameters(run.rig.checkpoint);
  EXPECT_TRUE(at::equal(shared, run.before.parameters[0]));
  for (const at::Tensor& parameters : run.resumed(3).parameters) EXPECT_TRUE(at::equal(parameters, shared));
  run.rig.steps = 5;
  EXPECT_FALSE(at::equal(run.resumed(3).parameters[0], shared)) << "the foil makes another step";
}

TEST(Resized, SharesOfABatchAreFoundAnew) {
  Rig rig = resized_rig("ddp");
  rig.seconds_per_example = {1, 3, 2};
  Stopped run(rig, 10);
  EXPECT_TRUE(says(run.resumed(3), "shares of a batch are found anew"));
}

TEST(StartHash, IsAlikeForAllStrategiesAndTellsSeedsApart) {
  Rig rig = resized_rig("single");
  rig.steps = 1;
  const std::string hash = train(rig).start_hash;
  EXPECT_EQ(hash.size(), 16u);
  for (const std::string strategy : {"ddp", "local-sgd", "hogwild", "parameter-server"}) {
    Rig other = rig;
    other.strategy.name = strategy;
    other.workers = 3;
    EXPECT_EQ(train(other).start_hash, hash) << strategy;
  }
  Rig coded = rig;
  coded.strategy.name = "all-reduce";
  coded.workers = 2;
  coded.codec.name = "int8";
  EXPECT_EQ(train(coded).start_hash, hash);
  rig.seed += 1;
  EXPECT_NE(train(rig).start_hash, hash);
}

}  // namespace
}  // namespace syncopate::test
