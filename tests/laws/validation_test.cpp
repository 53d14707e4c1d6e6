// What chooses looks at a validation split, and the model that is kept is the one that was chosen.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/data/subset.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/train/best_model.h"
#include "tests/contract/ranks.h"
#include "tests/laws/family_rig.h"
#include "tests/laws/rig.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"
#include "tests/support/tasks.h"

namespace syncopate::test {
namespace {

/// The rate is too high: it soon gets worse.
Rig validated_rig(const std::string& strategy, int workers, const std::filesystem::path& checkpoint) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.strategy.every = 4;
  rig.strategy.staleness = std::string("0");
  rig.workers = workers;
  rig.steps = 30;
  rig.eval_every = 3;
  rig.optim.schedule = std::string("constant");
  rig.optim.warmup = 0;
  rig.optim.lr = 0.01;
  rig.keep = std::string("best");
  rig.checkpoint = checkpoint;
  return rig;
}

record::EvalRecord best_of(const std::vector<record::EvalRecord>& evals) {
  record::EvalRecord best;
  for (const record::EvalRecord& eval : evals) {
    if (eval.split != "validation") continue;
    if (best.measures.empty() || eval.measures.at("accuracy") > best.measures.at("accuracy")) best = eval;
  }
  return best;
}

TEST(KeepBest, KeepsTheModelOfTheBestStepAndScoresItOnce) {
  for (const char* strategy : {"all-reduce", "local-sgd", "parameter-server"}) {
    const TempDir folder;
    Rig rig = validated_rig(strategy, 2, folder / "checkpoint.safetensors");
    const Trace trace = train(rig);
    const record::EvalRecord best = best_of(trace.evals);
    EXPECT_EQ(trace.kept_step, best.step) << strategy;
    EXPECT_LT(best.step, 30) << strategy << ": the last is the best, which shows nothing";
    EXPECT_EQ(trace.validation, best) << strategy;
    // The test split is looked at once, at the end, with that model.
    EXPECT_EQ(std::count_if(trace.evals.begin(), trace.evals.end(),
                            [](const record::EvalRecord& eval) { return eval.split == "test"; }),
              1);
    EXPECT_EQ(trace.evals.back(), *trace.test);
    EXPECT_EQ(trace.test->step, best.step);
    EXPECT_EQ(trace.test->loss, evaluate_parameters(trace.parameters[0], 1).loss) << strategy;
    EXPECT_TRUE(at::equal(trace.parameters[0], trace.parameters[1])) << strategy;
    // The same as a run that ends there.
    rig.keep = std::string("last");
    const Trace whole = train(rig);
    EXPECT_EQ(whole.kept_step, 30);
    EXPECT_FALSE(at::equal(trace.parameters[0], whole.parameters[0])) << strategy << ": the foil";
    rig.steps = best.step;
    EXPECT_TRUE(at::equal(trace.parameters[0], train(rig).parameters[0])) << strategy;
  }
}

TEST(KeepBest, WorkersThatRunFreeEndWithTheModelThatIsScored) {
  const TempDir folder;
  const Trace trace = train(validated_rig("hogwild", 2, folder / "checkpoint.safetensors"));
  EXPECT_EQ(trace.kept_step, best_of(trace.evals).step);
  for (const at::Tensor& replica : trace.parameters)
    EXPECT_EQ(trace.test->loss, evaluate_parameters(replica, 1).loss);
}

TEST(KeepBest, SurvivesAStopAndAnotherNumberOfWorkers) {
  const TempDir folder;
  const Trace straight = train(validated_rig("all-reduce", 2, folder / "straight.safetensors"));
  ASSERT_LT(straight.kept_step, 22);
  for (const int workers : {2, 3}) {
    const TempDir mine;
    Rig rig = validated_rig("all-reduce", 2, mine / "checkpoint.safetensors");
    rig.stop_after = 22;
    train(rig);
    rig.stop_after = 0;
    rig.resume = true;
    rig.workers = workers;
    const Trace resumed = train(rig);
    EXPECT_EQ(resumed.kept_step, straight.kept_step) << workers;
    for (const at::Tensor& replica : resumed.parameters)
      EXPECT_TRUE(at::equal(replica, straight.parameters[0])) << workers;
  }
}

TEST(KeepBest, WhatCameAfterTheCheckpointDidNotHappen) {
  const TempDir folder;
  const std::filesystem::path checkpoint = folder / "checkpoint.safetensors";
  run_ranks(1, [&](comm::Group& group) {
    nn::BertConfig config;
    config.vocab_size = 20;
    config.hidden = config.ffn = 8;
    config.layers = config.heads = 1;
    const auto model = nn::make_bert(config, 1);
    const auto value = [&](double x) { at::Tensor(model->parameters().front().tensor).detach().fill_(x); };
    const auto eval = [](int64_t step, double accuracy) {
      record::EvalRecord record;
      record.step = step;
      record.measures["accuracy"] = accuracy;
      return record;
    };
    train::BestModel best(checkpoint, group);
    value(1);
    best.offer(*model, eval(10, 0.5));
    best.saved();
    const auto state = best.state();
    value(2);
    best.offer(*model, eval(20, 0.5));  // no better: of equals the earlier
    EXPECT_EQ(best.eval()->step, 10);
    best.offer(*model, eval(30, 0.75));
    EXPECT_EQ(best.eval()->step, 30);
    EXPECT_TRUE(std::filesystem::exists(folder / "best-10.safetensors")) << "the checkpoint speaks of it";
    train::BestModel resumed(checkpoint, group);
    resumed.restore(state);
    EXPECT_FALSE(std::filesystem::exists(folder / "best-30.safetensors"));
    value(3);
    resumed.load(*model);
    EXPECT_EQ(model->parameters().front().tensor.flatten()[0].item<double>(), 1);
    std::filesystem::remove(folder / "best-10.safetensors");
    EXPECT_THROW(train::BestModel(checkpoint, group).restore(state), DataError);
  });
}

TEST(Validation, IsTheSameForEverySeedAndIsNotTrainedOn) {
  const TempDir folder;
  std::vector<spec::RunSpec> specs{
      small_spec("mlm", small_corpus(folder / "corpus")), small_spec("clm", small_corpus(folder / "corpus")),
      small_spec("squad", small_squad(folder / "squad")), small_spec("csv", small_table(folder / "table")),
      small_spec("idx", small_idx(folder / "idx"))};
  for (spec::RunSpec& spec : specs) {
    struct Found {
      uint64_t held_out = 0, trained_on = 0;
      int64_t size = 0, left = 0;
    };
    const auto made = [&] {
      Found found;
      run_ranks(1, [&](comm::Group& group) {
        const tasks::TaskSetup setup = tasks::family_of(spec.task.name).make(spec, group);
        found.trained_on = setup.train->fingerprint();
        found.left = setup.train->size();
        if (setup.validation == nullptr) return;
        found.held_out = setup.validation->fingerprint();
        found.size = setup.validation->size();
      });
      return found;
    };
    const Found off = made();
    EXPECT_EQ(off.size, 0) << spec.task.name << ": nothing chooses";
    spec.task.validation = std::string("0.2");
    const Found on = made();
    EXPECT_GT(on.size, 0) << spec.task.name;
    EXPECT_LT(on.left, off.left) << spec.task.name;
    EXPECT_NEAR(static_cast<double>(on.size), 0.2 * static_cast<double>(off.left),
                0.15 * static_cast<double>(off.left))
        << spec.task.name;
    spec.train.seed += 1;
    EXPECT_EQ(made().held_out, on.held_out) << spec.task.name;
    EXPECT_EQ(made().trained_on, on.trained_on) << spec.task.name;
    spec.task.validation = std::string("0.4");
    EXPECT_NE(made().held_out, on.held_out) << spec.task.name << ": the foil";
    spec.task.validation = std::string("auto");
    EXPECT_EQ(made().trained_on, off.trained_on) << spec.task.name;
    spec.train.patience = 2;
    EXPECT_GT(made().size, 0) << spec.task.name << ": patience chooses";
  }
}

TEST(Validation, IsNotTheTestSplit) {
  const TempDir folder;
  const std::string corpus = small_corpus(folder / "corpus"), squad = small_squad(folder / "squad"),
                    table = small_table(folder / "table");
  struct Case {
    std::string task, data, other;
  };
  for (const auto& [task, data, other] : {Case{"mlm", corpus, corpus + "/train.txt"},
                                          {"clm", corpus, corpus + "/train.txt"},
                                          {"squad", squad, squad + "/train.json"},
                                          {"csv", table, table + "/train.csv"},
                                          {"idx", small_idx(folder / "idx"), ""}}) {
    spec::RunSpec spec = small_spec(task, data);
    const auto complaint = [&] {
      return sentence<ConfigError>([&] {
        run_ranks(1, [&](comm::Group& group) { tasks::family_of(spec.task.name).make(spec, group); });
      });
    };
    spec.task.validation = data;
    EXPECT_NE(complaint().find("--validation is the test split itself"), std::string::npos) << task;
    spec.task.test_limit = 2;
    EXPECT_NE(complaint().find("--validation is the test split itself"), std::string::npos)
        << task << ": of which a sample is looked at";
    spec.task.validation = std::string("5%");
    EXPECT_NE(complaint().find("neither a share such as 0.05 nor a file or folder: 5%"), std::string::npos)
        << task;
    if (other.empty()) continue;
    spec.task.validation = other;
    EXPECT_EQ(complaint(), "") << task << ": the foil";
  }
  spec::RunSpec spec = small_spec("csv", table + "/train.csv");
  spec.task.validation = table + "/train.csv";
  EXPECT_NE(sentence<ConfigError>([&] {
              run_ranks(1, [&](comm::Group& group) { tasks::family_of("csv").make(spec, group); });
            }).find("holds the whole test split"),
            std::string::npos)
      << "one file, of which a part is the test split";
}

TEST(Validation, NotesOfItsFileAreTold) {
  const TempDir folder;
  spec::RunSpec spec = small_spec("csv", small_table(folder / "table"));
  const std::string own = read_text(folder / "table" / "train.csv");
  const std::string label = own.substr(own.rfind(',') + 1);
  write_text(folder / "more.csv",
             "text,label\nsome words," + label + (label.ends_with('\n') ? "" : "\n") + "\"\"," + label);
  spec.task.validation = (folder / "more.csv").string();
  run_ranks(1, [&](comm::Group& group) {
    const tasks::TaskSetup setup = tasks::family_of("csv").make(spec, group);
    EXPECT_EQ(setup.validation->size(), 1);
    EXPECT_EQ(std::count_if(setup.notes.begin(), setup.notes.end(),
                            [](const std::string& note) { return note.find("without text") != note.npos; }),
              1);
  });
}

TEST(Validation, OfBlocksIsASampleOfAll) {
  const TempDir folder;
  spec::RunSpec spec = small_spec("clm", small_corpus(folder / "corpus"));
  spec.task.validation = std::string("0.5");
  const auto ids = [&] {
    std::pair<int64_t, uint64_t> found;
    run_ranks(1, [&](comm::Group& group) {
      const tasks::TaskSetup setup = tasks::family_of("clm").make(spec, group);
      found = {setup.validation->size(), setup.validation->fingerprint()};
      if (spec.task.limit == 0) {
        found.second = data::Subset(setup.validation, tasks::sampled_examples(setup.validation->size(), 2))
                           .fingerprint();
      }
    });
    return found;
  };
  const auto whole = ids();
  ASSERT_GT(whole.first, 4);
  spec.task.limit = 4;
  EXPECT_EQ(ids(), (std::pair<int64_t, uint64_t>{2, whole.second}));
}

}  // namespace
}  // namespace syncopate::test
