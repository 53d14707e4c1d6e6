// Axes, sizes, named data and what else makes the arms of an experiment.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/lab/experiment.h"
#include "tests/support/support.h"

namespace syncopate::lab {
namespace {

class Axes : public testing::Test {
 protected:
  Experiment read(const std::string& text, const FileOptions& options = {}) const {
    test::write_text(folder_ / "x.toml", text);
    return read_experiment(folder_ / "x.toml", options);
  }
  std::string names(const std::string& text, const FileOptions& options = {}) const {
    std::vector<std::string> found;
    for (const Experiment::Arm& arm : read(text, options).arms) found.push_back(arm.name);
    return fmt::format("{}", fmt::join(found, " | "));
  }
  std::string complaint(const std::string& text, const FileOptions& options = {}) const {
    try {
      const Experiment experiment = read(text, options);
      require_inputs(experiment);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void expect_complaint(const std::string& text, const std::string& part,
                        const FileOptions& options = {}) const {
    const std::string found = complaint(text, options);
    EXPECT_NE(found.find(part), std::string::npos) << found << "\n" << part;
    EXPECT_NE(found.find("x.toml"), std::string::npos) << found;
  }

  test::TempDir folder_;
};

const std::string kTwoRows =
    "[[row]]\nstrategy=\"ddp\"\nworkers=2\n[[row]]\nstrategy=\"local-sgd\"\nworkers=2\n";

TEST_F(Axes, AloneOrTimesRowsInTheFilesOrder) {
  EXPECT_EQ(names("[axes]\nstrategy=[\"ddp\",\"all-reduce\"]\nworkers=[2,1]\n"),
            "ddp, workers 2 | ddp, workers 1 | all-reduce, workers 2 | all-reduce, workers 1");
  EXPECT_EQ(names("[axes]\nworkers=[2,1]\nstrategy=[\"ddp\",\"all-reduce\"]\n"),
            "ddp, workers 2 | all-reduce, workers 2 | ddp, workers 1 | all-reduce, workers 1");
  EXPECT_EQ(names("[axes]\nlr=[0.1,0.2]\n[[row]]\nname=\"a\"\nstrategy=\"single\"\n[[row]]\nname=\"b\"\n"),
            "a, lr 0.1 | a, lr 0.2 | b, lr 0.1 | b, lr 0.2");
  EXPECT_EQ(names(kTwoRows), "ddp | local-sgd");
}

TEST_F(Axes, OneThatIsNotHeededGivesOneRun) {
  const std::string every = "[axes]\n\"strategy.every\"=[1,2,4]\n";
  EXPECT_EQ(names(every + kTwoRows), "ddp | local-sgd, every 1 | local-sgd, every 2 | local-sgd, every 4");
  EXPECT_EQ(
      names("[axes]\nstrategy=[\"single\",\"ddp\",\"hogwild\"]\nworkers=[1,2]\ncodec=[\"none\",\"int8\"]\n"),
      "single | ddp, workers 1 | ddp, int8, workers 1 | ddp, workers 2 | ddp, int8, workers 2 | hogwild, "
      "workers "
      "1 | hogwild, workers 2")
      << "one worker has no others, and hogwild takes no codec";
  EXPECT_EQ(names("[axes]\nlr=[0.1,0.2]\n" + kTwoRows),
            "ddp, lr 0.1 | ddp, lr 0.2 | local-sgd, lr 0.1 | local-sgd, lr 0.2")
      << "the foil: all heed the rate";
}

TEST_F(Axes, RowsHaveAxesOfTheirOwnAndSettleOthers) {
  EXPECT_EQ(
      names("[axes]\nworkers=[1,2]\n[[row]]\nstrategy=\"ddp\"\n[[row]]\nstrategy=\"local-sgd\"\nworkers=3\n"
            "[row.axes]\n\"strategy.every\"=[2,4]\n"),
      "ddp, workers 1 | ddp, workers 2 | local-sgd, every 2 | local-sgd, every 4");
}

TEST_F(Axes, ANetworkNamesItself) {
  EXPECT_EQ(names("[[row]]\nstrategy=\"ddp\"\nworkers=2\nscale=20\n[row.axes]\nnetwork=[\"two-sites\","
                  "\"worldwide\"]\n"),
            "ddp, two-sites | ddp, worldwide");
}

TEST_F(Axes, SeedsMakeRunsOfOneArm) {
  const Experiment swept = read("[axes]\nseed=[1,2,3]\n" + kTwoRows);
  ASSERT_EQ(swept.arms.size(), 2u);
  EXPECT_EQ(swept.arms[0].seeds, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(swept.axes.empty()) << "the seed is no axis of the table";
  const Experiment by_hand =
      read("[[row]]\nname=\"a, seed 1\"\nseed=1\n[[row]]\nname=\"a, seed 2\"\nseed=2\n[[row]]\nlr=0.1\n");
  ASSERT_EQ(by_hand.arms.size(), 2u);
  EXPECT_EQ(by_hand.arms[0].name, "a");
  EXPECT_EQ(by_hand.arms[0].seeds, (std::vector<int64_t>{1, 2}));
}

TEST_F(Axes, NamesAreUnique) {
  EXPECT_EQ(names("[[row]]\nstrategy=\"ddp\"\nworkers=2\n[[row]]\nstrategy=\"ddp\"\nworkers=2\nlr=0.1\n"
                  "[[row]]\nstrategy=\"single\"\n"),
            "ddp, lr 0.0005 | ddp, lr 0.1 | single");
}

TEST_F(Axes, BadOnesAreRefused) {
  expect_complaint("[axes]\nworkes=[1]\n", "axes: unknown setting \"workes\"; did you mean \"workers\"?");
  expect_complaint("[axes]\nworkers=[]\n", "axes: comm.workers has no values");
  expect_complaint("[axes]\nworkers=2\n", "workers must be a list of values");
  expect_complaint("[axes]\nworkers=[2,2]\n", "comm.workers lists 2 twice");
  expect_complaint("[axes]\nworkers=[\"two\"]\n", "--workers must be a whole number");
  expect_complaint("[axes]\n\"strategy.every\"=[1,2]\n[[row]]\nstrategy=\"ddp\"\n",
                   "axes: strategy.every has no effect in any row");
  expect_complaint("[axes]\nworkers=[1,2]\n[[row]]\nworkers=2\n", "every row sets comm.workers itself");
  expect_complaint("[settings]\nlr=1\n[axes]\nlr=[1,2]\n", "both in [settings] and in [axes]");
  expect_complaint("[[row]]\nlr=1\n[row.axes]\nlr=[1,2]\n", "row 1: optim.lr is both an axis and a setting");
  expect_complaint(
      "[axes]\nstrategy=[\"diloco\"]\n\"strategy.every\"=[3]\n\"strategy.fragments\"=[2]\n",
      "with strategy.name = diloco, strategy.every = 3, strategy.fragments = 2: strategy.every must be");
  expect_complaint("[[row]]\nlr=1\n[[row]]\nlr=1.0\n",
                   "row 2: it has the same settings as row 1, seed 0 too");
  expect_complaint("[axes]\nlr=[-1.0,0.1]\n", "--lr must be a number of 0 or more, got -1");
  expect_complaint("[axes]\nwarmup=[-0.1,0.1]\n", "--warmup must be 0 or more");
  expect_complaint("[[row]]\nschedule=\"cyclic\"\n\"optim.cycle_ratio\"=0.5\n",
                   "optim.cycle_ratio must be 1 or more");
  EXPECT_EQ(complaint("[axes]\nlr=[0.0,0.1]\n"), "") << "the foil: train takes 0";
}

TEST_F(Axes, TooManyRunsAreRefusedUnlessAllowed) {
  std::string rates = "0.001", seeds = "1";
  for (int i = 2; i <= 120; ++i) rates += fmt::format(",{}", 0.001 * i), seeds += fmt::format(",{}", i);
  const std::string file = "[axes]\nlr=[" + rates + "]\nseed=[" + seeds + "]\n";
  expect_complaint(file,
                   "its axes make 14400 combinations; use fewer values, or allow them with --max-runs 14400");
  EXPECT_EQ(read(file, {.size = {}, .most_runs = 20000}).arms.size(), 120u);
  expect_complaint("[axes]\nlr=[" + rates + "]\nclip=[" + rates + "]\n\"optim.eps\"=[" + rates + "]\n",
                   "its axes make 1728000 combinations");
  const auto list = [](int count) {
    std::string values = "0";
    for (int i = 1; i < count; ++i) values += fmt::format(",{}", i * 1e-5);
    return values;
  };
  const Stopwatch clock;
  expect_complaint("[axes]\nlr=[" + list(1000) + "]\nwarmup=[" + list(990) + "]\n",
                   "its axes make 990000 combinations");
  EXPECT_LT(clock.seconds(), 2) << "no run is made to be counted";
  expect_complaint(
      "[axes]\nlr=[" + list(90) + "]\n[[phase]]\nname=\"a\"\ntask=\"mlm\"\naxes=[\"lr\"]\n[[row]]\n",
      "its axes make 180 combinations", {.size = {}, .most_runs = 100});
  expect_complaint("[tune]\nlr=[" + list(90) + "]\n[[row]]\n",
                   "it makes 91 runs; use fewer values, or allow them with --max-runs 91",
                   {.size = {}, .most_runs = 90});
}

TEST_F(Axes, PhasesRunWithTheSameValues) {
  const std::string text =
      "[settings]\ntask=\"rte\"\ninit_from=\"phase:words\"\n[axes]\nstrategy=[\"ddp\",\"local-sgd\"]"
      "\nworkers=[2]\n"
      "\"strategy.every\"=[2,4]\nseed=[1,2]\n[[phase]]\nname=\"words\"\ntask=\"mlm\"\nworkers=2\n";
  const Experiment each = read(text + "axes=[\"strategy\",\"strategy.every\",\"seed\"]\n");
  ASSERT_EQ(each.phases.size(), 6u) << "ddp, every 2, every 4; two seeds";
  for (const Experiment::Arm& arm : each.arms) {
    for (size_t i = 0; i < arm.seeds.size(); ++i) {
      const Experiment::Phase& phase = each.phases[*arm.starts[i]];
      EXPECT_EQ(phase.spec.strategy.name, arm.spec.strategy.name);
      EXPECT_EQ(phase.spec.strategy.every, arm.spec.strategy.every);
      EXPECT_EQ(phase.spec.train.seed, arm.seeds[i]);
    }
  }
  EXPECT_EQ(each.phases[3].label(), "words, local-sgd, every 2, seed 2");
  EXPECT_EQ(read(text).phases.size(), 1u) << "the foil: one for all";
  EXPECT_EQ(read(text + "[phase.axes]\nstrategy=[\"ddp\",\"local-sgd\",\"diloco\"]\n").phases.size(), 2u)
      << "nothing starts from diloco";
  expect_complaint(text + "axes=[\"lr\"]\n", "phase 1: optim.lr is no axis of this file");
  expect_complaint(text + "[phase.axes]\nstrategy=[\"ddp\"]\n",
                   "it starts from the phase \"words\", which is not run with strategy.name = local-sgd");
}

TEST_F(Axes, APhaseThatIsKeptKeepsWhatItStartsFrom) {
  const std::string phase = "task=\"mlm\"\nstrategy=\"local-sgd\"\nworkers=2\n",
                    axis = "[phase.axes]\n\"strategy.every\"=[1,2]\n";
  const std::string text =
      "[settings]\nstrategy=\"local-sgd\"\nworkers=2\n\"strategy.every\"=1\n[[phase]]\nname=\"a\"\n" + phase +
      axis;
  const std::string row = "[[row]]\ninit_from=\"phase:a\"\n";
  EXPECT_EQ(read(text + row).phases.size(), 1u) << "the foil: nothing starts from every 2";
  const Experiment kept = read(text + "[[phase]]\nname=\"b\"\ninit_from=\"phase:a\"\n" + phase + axis + row);
  ASSERT_EQ(kept.phases.size(), 4u) << "no row starts from b: it is wanted for itself";
  for (size_t i = 2; i < 4; ++i) {
    ASSERT_TRUE(kept.phases[i].after);
    EXPECT_EQ(kept.phases[*kept.phases[i].after].spec.strategy.every, kept.phases[i].spec.strategy.every);
    EXPECT_EQ(kept.phases[*kept.phases[i].after].name, "a");
  }
}

TEST_F(Axes, AxesOfARowOrPhaseAreItsOwnSettings) {
  expect_complaint(
      "[[phase]]\nname=\"a\"\ntask=\"mlm\"\nstrategy=\"ddp\"\n[phase.axes]\n\"strategy.every\"=[1,8]\n"
      "[[row]]\ninit_from=\"phase:a\"\n",
      "phase 1: axes: strategy.every has no effect with ddp");
  const std::string every = "[row.axes]\n\"strategy.every\"=[1,8]\n";
  const std::string local = "[[row]]\nstrategy=\"local-sgd\"\nworkers=2\n" + every;
  expect_complaint(local + "[[row]]\nstrategy=\"ddp\"\nworkers=2\n" + every,
                   "row 2: axes: strategy.every has no effect with ddp");
  expect_complaint(local + "[[row]]\nstrategy=\"single\"\n[row.axes]\nworkers=[1,2]\n",
                   "row 2: axes: comm.workers: single has one worker");
  EXPECT_EQ(
      complaint(
          local +
          "[[row]]\nworkers=2\n[row.axes]\nstrategy=[\"ddp\",\"local-sgd\"]\n\"strategy.every\"=[2,4]\n"),
      "")
      << "the foil: one of its strategies heeds it";
}

TEST_F(Axes, RowsThatBecomeTheSameAreRefused) {
  const std::string a = "[[row]]\nname=\"A\"\nstrategy=\"single\"\n",
                    b = "[[row]]\nname=\"B\"\nstrategy=\"single\"\n";
  const std::string found = complaint(a + b + "validation=0.1\n");
  EXPECT_NE(found.find("row 2: once rows share"), std::string::npos) << found;
  EXPECT_NE(found.find("same settings as row 1, seed 0 too (\"A\" and \"B\")"), std::string::npos) << found;
  const Experiment seeds = read(a + b + "seed=7\nvalidation=0.1\n");
  ASSERT_EQ(seeds.arms.size(), 1u) << "seeds of one arm";
  EXPECT_EQ(seeds.arms[0].seeds, (std::vector<int64_t>{0, 7}));
  EXPECT_EQ(names(a + b + "validation=0.1\nlr=0.1\n"), "A | B") << "the foil: another rate";
  EXPECT_EQ(names(a + "lr=5e-4\n" + b + "[tune]\nlr=[0.1]\n"), "A | B")
      << "the default rate, and one that is tuned";
}

TEST_F(Axes, SizesAreLaidOverTheFile) {
  const std::string text =
      "title=\"small\"\n[settings]\nlr=0.5\nlimit=10\n[axes]\nseed=[1]\n[[row]]\nname=\"a\"\n[[row]]\nname="
      "\"b\"\nworkers=2\n"
      "[size.gpu]\ntitle=\"large\"\n[size.gpu.settings]\nlimit=1000\n[size.gpu.axes]\nseed=[1,2]\n"
      "[size.gpu.row.b]\nworkers=4\n";
  const Experiment small = read(text), large = read(text, {.size = "gpu"});
  EXPECT_EQ(small.title, "small");
  EXPECT_EQ(large.title, "large");
  EXPECT_EQ(small.arms[1].spec.task.limit, 10);
  EXPECT_EQ(large.arms[1].spec.task.limit, 1000);
  EXPECT_EQ(large.arms[1].spec.optim.lr, 0.5);
  EXPECT_EQ(large.arms[1].seeds.size(), 2u);
  EXPECT_EQ(small.arms[1].spec.comm.workers, 2);
  EXPECT_EQ(large.arms[1].spec.comm.workers, 4);
  expect_complaint(text, "there is no [size.gpus]; did you mean \"gpu\"?", {.size = "gpus"});
  expect_complaint("[[row]]\n[size.gpu.row.c]\nworkers=4\n", "there is no row with the name \"c\" to change",
                   {.size = "gpu"});
  expect_complaint("[[row]]\n[size]\ngpu=3\n",
                   "size: gpu must be a table of what it changes: [size.gpu.settings]", {.size = "gpu"});
  expect_complaint("[[row]]\nname=5\n[size.gpu.row.x]\nworkers=1\n",
                   "there is no row with the name \"x\" to change", {.size = "gpu"});
  expect_complaint("[[row]]\nname=\"x\"\n[size.gpu.row]\nx=1\n", "size: row.x must be a table",
                   {.size = "gpu"});
  expect_complaint("[[row]]\nname=5\n", "row 1: name must be a text");
}

TEST_F(Axes, DataIsGivenByName) {
  const std::string text = "[data]\nrte=\"\"\n[settings]\ntask=\"rte\"\ndata=\"{rte}/here\"\n[[row]]\n";
  EXPECT_EQ(read(text, {.size = {}, .data = {{"rte", "/data"}}}).arms[0].spec.task.data, "/data/here");
  expect_complaint(text, "the data {rte}/here is not there; say where it is with --data rte=PATH");
  expect_complaint(text, "[data] has no rtee; did you mean \"rte\"?", {.size = {}, .data = {{"rtee", "/x"}}});
  test::write_text(folder_ / "here", "");
  EXPECT_EQ(complaint(text, {.size = {}, .data = {{"rte", folder_.path().string()}}}), "");
}

TEST_F(Axes, WhatIsNotThereIsToldBeforeAnythingRuns) {
  const std::string row = "[[row]]\nstrategy=\"single\"\n";
  expect_complaint(row + row + "task=\"rte\"\ndata=\"/nowhere\"\n",
                   "row 2 (single, rte, nowhere): the data /nowhere is not there");
  expect_complaint(row + "model=\"/nowhere\"\n", "there is no model \"/nowhere\"");
  expect_complaint(row + "init_from=\"/nowhere\"\n", "neither a run's folder nor a model folder");
  expect_complaint(row + "vocab=\"/nowhere\"\n", "the vocabulary /nowhere is not there");
  expect_complaint(row + "validation=\"/nowhere\"\n", "the validation data /nowhere is not there");
  expect_complaint(row + "[tune]\nlr=[0.1]\nvalidation=\"/nowhere\"\n", "tune: the validation data /nowhere");
  EXPECT_EQ(complaint(row), "");
}

TEST_F(Axes, AssignmentsHoldForAllThatHeedThem) {
  const std::string text = "[axes]\nseed=[1,2,3]\n[settings]\nepochs=3\n" + kTwoRows;
  const Experiment experiment =
      read(text, {.size = {}, .set = {{"steps", "5"}, {"strategy.every", "3"}, {"seed", "7,8"}}});
  ASSERT_EQ(experiment.arms.size(), 2u);
  EXPECT_EQ(experiment.arms[0].spec.train.steps, 5);
  EXPECT_EQ(experiment.arms[0].spec.train.epochs, 0) << "one of the two";
  EXPECT_EQ(experiment.arms[0].spec.strategy.every, 8) << "ddp heeds none";
  EXPECT_EQ(experiment.arms[1].spec.strategy.every, 3);
  EXPECT_EQ(experiment.arms[1].seeds, (std::vector<int64_t>{7, 8}));
  expect_complaint(text, "--set codec.rank: it has no effect in any run",
                   {.size = {}, .set = {{"codec.rank", "2"}}});
  expect_complaint(text, "--set stepz: unknown setting", {.size = {}, .set = {{"stepz", "2"}}});
  const std::string tuned = "[tune]\nlr=[0.1,0.2]\n" + text;
  expect_complaint(tuned, "--set lr: [tune] chooses it for each arm", {.size = {}, .set = {{"lr", "0.5"}}});
  EXPECT_EQ(read(tuned, {.size = {}, .set = {{"clip", "0.5"}}}).arms[0].spec.optim.clip, 0.5) << "the foil";
}

TEST_F(Axes, SerialControlsMakeTheSameUpdates) {
  const std::string rows =
      "[settings]\nbatch_size=8\nsteps=10\n[[row]]\nstrategy=\"ddp\"\nworkers=4\n"
      "[[row]]\nstrategy=\"hogwild\"\nworkers=4\n[[row]]\nstrategy=\"ddp\"\nworkers=4\naccumulate=4\n"
      "[[row]]\nstrategy=\"all-reduce\"\nworkers=4\n";
  EXPECT_EQ(names(rows), "ddp, accumulate 1 | hogwild | ddp, accumulate 4 | all-reduce");
  const Experiment experiment = read("[compare]\nbaseline=\"all-reduce\"\ncontrols=true\n" + rows);
  ASSERT_EQ(experiment.arms.size(), 6u);
  const Experiment::Arm &of_hogwild = experiment.arms[4], &of_accumulation = experiment.arms[5];
  EXPECT_EQ(of_hogwild.name, "serial control of hogwild");
  EXPECT_EQ(of_hogwild.control_of, (std::vector<size_t>{1}));
  EXPECT_EQ(of_hogwild.spec.strategy.name, "single");
  EXPECT_EQ(of_hogwild.spec.examples_per_step(), 8);
  EXPECT_EQ(of_hogwild.spec.train.steps, 40);
  EXPECT_EQ(of_accumulation.spec.examples_per_step(), 128);
  EXPECT_EQ(of_accumulation.spec.train.steps, 10);
  const Experiment there = read("[compare]\nbaseline=\"all-reduce\"\ncontrols=true\n" + rows +
                                "[[row]]\nstrategy=\"single\"\nbatch_size=128\n");
  EXPECT_EQ(there.arms.size(), 6u) << "a row is the control of accumulation";
}

TEST_F(Axes, ControlsAreForTheReportsBaseline) {
  const std::string ddp = "[[row]]\nstrategy=\"ddp\"\nworkers=2\nglobal_batch=32\n",
                    single = "[[row]]\nstrategy=\"single\"\nglobal_batch=8\n",
                    settings = "[settings]\nsteps=4\n[compare]\ncontrols=true\n";
  EXPECT_EQ(names(settings + ddp + single), "ddp | single | serial control of ddp")
      << "the one-worker arm is the baseline, not the first";
  EXPECT_EQ(names(settings + "baseline=\"ddp\"\n" + ddp + single), "ddp | single") << "the foil: ddp by name";
  EXPECT_EQ(names(settings + "[[row]]\nstrategy=\"ddp\"\nworkers=4\nglobal_batch=8\n[[row]]\nstrategy="
                             "\"all-reduce\"\nworkers=2\nglobal_batch=32\n"),
            "ddp | all-reduce | serial control of ddp")
      << "without one, that with the fewest workers";
}

TEST_F(Axes, ComparisonsAreChecked) {
  expect_complaint("[compare]\nbaseline=\"dpd\"\n" + kTwoRows,
                   "compare: no row is called \"dpd\"; did you mean \"ddp\"?");
  expect_complaint("[compare]\ndiffers=[\"bach\"]\n" + kTwoRows,
                   "there is no check \"bach\"; did you mean \"batch\"?");
  EXPECT_EQ(read("[compare]\ndiffers=[\"selection\"]\n" + kTwoRows).differs.size(), 1u);
  expect_complaint("[compare]\nprice=1\n" + kTwoRows, "compare: unknown entry \"price\"");
  expect_complaint("[target]\naccuracy=\"high\"\n" + kTwoRows, "target: accuracy must be a number");
  expect_complaint("[tune]\nseeds=[1]\n" + kTwoRows, "tune: it lists no values");
  expect_complaint("[tune]\nlr=[0.1]\n[axes]\nlr=[1]\n" + kTwoRows, "tune: optim.lr is an axis too");
  expect_complaint("[tune]\nstrategy=[\"ddp\"]\n" + kTwoRows,
                   "tune: strategy is not a number that could be tuned");
  expect_complaint("[tune]\nlr=[0.1]\n[[row]]\nlr=1\n", "tune: every row sets optim.lr itself");
  expect_complaint("[tune]\nlr=[-1.0,0.1]\n" + kTwoRows,
                   "tune: ddp: --lr must be a number of 0 or more, got -1");
  expect_complaint(
      "[tune]\n\"optim.momentum\"=[0.0,0.9]\n[settings]\noptimizer=\"sgd\"\n[[row]]\nname=\"plain\"\n[[row]]"
      "\nname="
      "\"nesterov\"\n\"optim.nesterov\"=true\n",
      "tune: nesterov: optim.nesterov needs a momentum above 0");
  const Experiment all = read(
      "[target]\naccuracy=0.8\n[compare]\nbaseline=\"ddp\"\ndiffers=[\"batch\"]\nworker_hour=0.5\nlink_gbit="
      "1\n"
      "[tune]\nlr=[0.1,0.01]\n" +
      kTwoRows + "[[row]]\nlr=1\n");
  EXPECT_EQ(all.target->measure, "accuracy");
  EXPECT_EQ(all.worker_hour, 0.5);
  EXPECT_EQ(all.tune->values, (std::vector<double>{0.01, 0.1}));
  EXPECT_TRUE(all.arms[0].tuned);
  EXPECT_FALSE(all.arms[2].tuned) << "it has a rate of its own";
}

}  // namespace
}  // namespace syncopate::lab
