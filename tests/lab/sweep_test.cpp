// The logic of a sweep, with runs that only pretend.
#include "syncopate/lab/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/version.h"
#include "syncopate/record/run_folder.h"
#include "tests/support/support.h"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;

/// How a pretended run ends.
struct Act {
  int exit_code = 0;
  int signal = 0;
  double validation = 0.5, test = 0.5;
  int looks = 1;  ///< that it takes
  std::string version = program_version();
  bool checkpoint = false;  ///< it leaves one where it does not end well
};

class Pretended : public Runner {
 public:
  std::function<Act(const spec::RunSpec&)> act = [](const spec::RunSpec&) { return Act{}; };
  std::vector<Launch> launches;
  size_t at_once = 0, most_at_once = 0;

  std::unique_ptr<RunInProgress> start(const Launch& launch) override {
    launches.push_back(launch);
    most_at_once = std::max(most_at_once, ++at_once);
    return std::make_unique<Run>(*this, launch, act(launch.spec));
  }

 private:
  class Run : public RunInProgress {
   public:
    Run(Pretended& runner, Launch launch, Act act) : runner_(runner), launch_(std::move(launch)), act_(act) {}
    std::optional<Ending> look() override {
      if (stopped_) {
        act_.exit_code = 130;
      } else if (--act_.looks > 0) {
        return std::nullopt;
      }
      --runner_.at_once;
      const record::RunFolder folder{launch_.folder};
      std::filesystem::create_directories(folder.path);
      test::write_text(folder.spec(), launch_.spec.fields().to_json().dump());
      if (act_.checkpoint || stopped_) test::write_text(folder.checkpoint(), "");
      if (act_.exit_code != 0)
        return Ending{.exit_code = act_.exit_code, .signal = act_.signal, .message = "it broke"};
      record::RunRecord record;
      record.eval.emplace().measures = {{"accuracy", act_.test}};
      if (launch_.spec.validation().on())
        record.validation.emplace().measures = {{"accuracy", act_.validation}};
      record.provenance.version = act_.version;
      record.provenance.commit = program_commit();
      test::write_text(folder.result(), record::to_json(record).dump());
      std::filesystem::create_directories(folder.model());
      test::write_text(folder.model() / "weights", fmt::format("{} {}", launch_.spec.train.seed, act_.test));
      test::write_text(folder.done(), "");
      return Ending{};
    }
    void stop() override { stopped_ = true; }

   private:
    Pretended& runner_;
    Launch launch_;
    Act act_;
    bool stopped_ = false;
  };
};

class SweepLogic : public testing::Test {
 protected:
  SweepResult sweep(const std::string& text, SweepOptions options = {}) {
    test::write_text(folder_ / "x.toml", text);
    options.say = [this](const std::string& line) { said_ += line + "\n"; };
    runner_.launches.clear();
    runner_.most_at_once = 0;
    return lab::sweep(read_experiment(folder_ / "x.toml"), folder_ / "out", options, runner_);
  }
  Json written() const { return Json::parse(test::read_text(folder_ / "out/sweep.json")); }
  std::string states() const {
    std::vector<std::string> found;
    const Json sweep = written();
    for (const Json& run : sweep["runs"]) found.push_back(run["state"]);
    return fmt::format("{}", fmt::join(found, " "));
  }

  test::TempDir folder_;
  Pretended runner_;
  std::string said_;
};

const std::string kArms = "[axes]\nlr=[0.1,0.2]\nseed=[1,2]\n[[row]]\nstrategy=\"single\"\nthreads=1\n";

TEST_F(SweepLogic, RunsSeedBySeedAndRepeatsNothing) {
  EXPECT_EQ(sweep(kArms).exit_code, 0);
  std::string order;
  for (const Launch& launch : runner_.launches)
    order += fmt::format("{}/{} ", launch.spec.optim.lr, launch.spec.train.seed);
  EXPECT_EQ(order, "0.1/1 0.2/1 0.1/2 0.2/2 ");
  const Json first = written();
  EXPECT_EQ(first["state"], "finished");
  EXPECT_EQ(first["runs"].size(), 4u);
  EXPECT_EQ(first["runs"][1]["arm"], "a0");
  EXPECT_EQ(first["runs"][1]["seed"], 2);
  EXPECT_EQ(first["runs"][2]["name"], "single, lr 0.2");
  EXPECT_EQ(first["runs"][2]["axes"], (Json{{"optim.lr", "0.2"}}));
  EXPECT_EQ(first["runs"][2]["reused"], false);
  EXPECT_EQ(sweep(kArms).exit_code, 0);
  EXPECT_EQ(runner_.launches.size(), 0u);
  EXPECT_EQ(written()["runs"][2]["reused"], true);
  EXPECT_NE(said_.find("4 of 4 runs were done before"), std::string::npos) << said_;
  sweep("[settings]\nclip=0.5\n" + kArms);
  EXPECT_EQ(runner_.launches.size(), 4u) << "the foil: another setting";
}

TEST_F(SweepLogic, NoticesChangedData) {
  const std::string file = folder_ / "data.csv";
  test::write_text(file, "one");
  const std::string text =
      "[settings]\ntask=\"csv\"\ntext=\"a\"\nlabel=\"b\"\ndata=\"" + file + "\"\n" + kArms;
  sweep(text);
  test::write_text(file, "one");
  sweep(text);
  EXPECT_EQ(runner_.launches.size(), 0u) << "another time, the same content";
  test::write_text(file, "two");
  sweep(text);
  EXPECT_EQ(runner_.launches.size(), 4u);
  EXPECT_NE(said_.find("task.data changed since"), std::string::npos) << said_;
  size_t aside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out/outdated"))
    aside += entry.is_directory() ? 1 : 0;
  EXPECT_EQ(aside, 4u) << "nothing is lost";
}

TEST_F(SweepLogic, NoticesChangedDataOfRunsThatNobodyNoted) {
  const std::string file = folder_ / "data.csv";
  test::write_text(file, "one");
  const std::string text =
      "[settings]\ntask=\"csv\"\ntext=\"a\"\nlabel=\"b\"\ndata=\"" + file + "\"\n" + kArms;
  sweep(text);
  std::filesystem::remove(folder_ / "out/inputs.json");
  sweep(text);
  EXPECT_EQ(runner_.launches.size(), 0u) << "older than the runs";
  std::filesystem::remove(folder_ / "out/inputs.json");
  std::filesystem::last_write_time(file,
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  sweep(text);
  EXPECT_EQ(runner_.launches.size(), 4u);
}

TEST_F(SweepLogic, GoesOnPastRunsThatFail) {
  runner_.act = [](const spec::RunSpec& spec) {
    if (spec.train.seed == 2) return Act{};
    return spec.optim.lr == 0.1 ? Act{.exit_code = 4} : Act{.exit_code = 5};
  };
  EXPECT_EQ(sweep(kArms).exit_code, 4) << "of the first that failed";
  EXPECT_EQ(states(), "failed done diverged done");
  EXPECT_EQ(written()["runs"][0]["message"], "it broke");
  EXPECT_EQ(written()["runs"][0]["exit_code"], 4);
  runner_.act = [](const spec::RunSpec&) { return Act{}; };
  EXPECT_EQ(sweep(kArms).exit_code, 0);
  EXPECT_EQ(runner_.launches.size(), 1u) << "what failed runs again; what diverged would again";
  EXPECT_EQ(states(), "done done diverged done");
}

TEST_F(SweepLogic, ARunThatIsKilledIsRecordedSo) {
  runner_.act = [](const spec::RunSpec& spec) {
    return spec.train.seed == 2 ? Act{} : Act{.exit_code = 137, .signal = 9, .checkpoint = true};
  };
  EXPECT_EQ(sweep(kArms).exit_code, 137);
  EXPECT_EQ(states(), "killed done killed done");
  runner_.act = [](const spec::RunSpec&) { return Act{}; };
  sweep(kArms);
  ASSERT_EQ(runner_.launches.size(), 2u);
  EXPECT_TRUE(runner_.launches[0].resume) << "it left a checkpoint";
}

TEST_F(SweepLogic, StopsInOrderAndGoesOn) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 3}; };
  SweepOptions options;
  options.stop_requested = [this] { return runner_.launches.size() == 2; };
  EXPECT_EQ(sweep(kArms, options).exit_code, 130);
  EXPECT_EQ(written()["state"], "stopped");
  EXPECT_EQ(states(), "done planned stopped planned");
  EXPECT_EQ(sweep(kArms).exit_code, 0);
  ASSERT_EQ(runner_.launches.size(), 3u);
  EXPECT_TRUE(runner_.launches[0].resume);
  EXPECT_FALSE(runner_.launches[1].resume);
  EXPECT_EQ(written()["state"], "finished");
}

const std::string kPhases =
    "[settings]\ntask=\"rte\"\ninit_from=\"phase:words\"\n[axes]\nstrategy=[\"ddp\",\"local-sgd\"]\nseed=[1]"
    "\n"
    "[[phase]]\nname=\"words\"\ntask=\"mlm\"\naxes=[\"strategy\"]\n";

TEST_F(SweepLogic, RowsStartFromThePhaseOfTheSameValues) {
  EXPECT_EQ(sweep(kPhases).exit_code, 0);
  ASSERT_EQ(runner_.launches.size(), 4u);
  EXPECT_EQ(runner_.launches[2].spec.model.init_from, runner_.launches[0].folder.string());
  EXPECT_EQ(runner_.launches[3].spec.model.init_from, runner_.launches[1].folder.string());
  EXPECT_EQ(written()["runs"][0]["kind"], "phase");
  sweep(kPhases);
  EXPECT_EQ(runner_.launches.size(), 0u);
  // The phase is made again and comes to another model: what starts from it is made again.
  std::filesystem::remove(folder_ / "out" / written()["runs"][0]["folder"] / "DONE");
  runner_.act = [](const spec::RunSpec&) { return Act{.test = 0.75}; };
  sweep(kPhases);
  EXPECT_EQ(runner_.launches.size(), 2u) << said_;
  EXPECT_NE(said_.find("the model that it starts from changed since"), std::string::npos) << said_;
}

TEST_F(SweepLogic, WhatStartsFromAFailedPhaseFailsWithIt) {
  runner_.act = [](const spec::RunSpec& spec) {
    return spec.task.name == "mlm" && spec.strategy.name == "ddp" ? Act{.exit_code = 3} : Act{};
  };
  EXPECT_EQ(sweep(kPhases).exit_code, 3);
  EXPECT_EQ(states(), "failed done failed done");
  EXPECT_NE(written()["runs"][2]["message"].get<std::string>().find("phase words, ddp"), std::string::npos);
}

const std::string kTuned =
    "[tune]\nlr=[0.001,0.01,0.1]\nseeds=[7,8]\n[axes]\nseed=[1,2]\n[[row]]\nstrategy=\"single\"\nthreads=1\n";

TEST_F(SweepLogic, TuningChoosesByTheValidationSplitAlone) {
  runner_.act = [](const spec::RunSpec& spec) {  // validation likes 0.01, the test split 0.1
    return Act{.validation = 1 - std::abs(spec.optim.lr - 0.01), .test = spec.optim.lr};
  };
  EXPECT_EQ(sweep(kTuned).exit_code, 0);
  const Json sweep_json = written(), tuning = sweep_json["tuning"][0];
  EXPECT_EQ(tuning["best"], 0.01);
  EXPECT_EQ(tuning["edge"], nullptr);
  EXPECT_EQ(tuning["measure"], "accuracy");
  ASSERT_EQ(tuning["values"].size(), 5u) << "two finer ones";
  EXPECT_EQ(tuning["values"][1]["value"], 0.00316);
  EXPECT_EQ(tuning["values"][1]["refined"], true);
  EXPECT_EQ(tuning["values"][0]["seeds"], (Json{7, 8}));
  size_t tune = 0, rows = 0;
  for (const Json& run : sweep_json["runs"]) {
    tune += run["kind"] == "tune" ? 1 : 0;
    if (run["kind"] != "row") continue;
    ++rows;
    EXPECT_EQ(run["lr"], 0.01);
  }
  EXPECT_EQ(tune, 10u);
  EXPECT_EQ(rows, 2u);
  for (const Launch& launch : runner_.launches) {
    const bool row = launch.spec.train.seed < 7;
    EXPECT_EQ(launch.spec.task.test_limit, row ? 0 : 1) << "of the test split tuning sees one example";
    EXPECT_EQ(launch.spec.validation().on(), !row);
  }
  sweep(kTuned);
  EXPECT_EQ(runner_.launches.size(), 0u) << "tuning is not repeated";
  EXPECT_EQ(written()["tuning"][0]["best"], 0.01);
}

TEST_F(SweepLogic, ABestAtTheEdgeIsTold) {
  runner_.act = [](const spec::RunSpec& spec) { return Act{.validation = spec.optim.lr}; };
  sweep(kTuned);
  EXPECT_EQ(written()["tuning"][0]["edge"], "high");
  EXPECT_NE(said_.find("the largest of those tried"), std::string::npos) << said_;
}

TEST_F(SweepLogic, AnArmWhoseTuningDivergedIsRecordedSo) {
  runner_.act = [](const spec::RunSpec&) { return Act{.exit_code = 5}; };
  EXPECT_EQ(sweep(kTuned).exit_code, 0);
  EXPECT_EQ(runner_.launches.size(), 6u) << "no row was run";
  EXPECT_EQ(written()["tuning"][0]["best"], nullptr);
  EXPECT_TRUE(states().ends_with("diverged diverged")) << states();
}

TEST_F(SweepLogic, RowsGoSideBySideOnlyOnCoresOfTheirOwn) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 2}; };
  SweepOptions options;
  options.jobs = 4;
  options.cores = {3, 5};
  sweep(kArms, options);
  EXPECT_EQ(runner_.most_at_once, 2u) << "one core each";
  EXPECT_EQ(runner_.launches[0].cores, (std::vector<int>{3}));
  EXPECT_EQ(runner_.launches[1].cores, (std::vector<int>{5}));
  EXPECT_EQ(written()["runs"][0]["alone"], false);
  sweep(kArms, options);
  EXPECT_EQ(written()["runs"][0]["alone"], false) << "still";
  sweep("[settings]\nclip=0.5\n[axes]\nlr=[0.1,0.2]\n[[row]]\nstrategy=\"single\"\nthreads=2\n", options);
  EXPECT_EQ(runner_.most_at_once, 1u) << "the foil: each needs both";
  EXPECT_EQ(written()["runs"][0]["alone"], true);
  EXPECT_NE(said_.find("rows take turns: each needs 2 of 2 cores"), std::string::npos) << said_;
}

TEST_F(SweepLogic, TuningGoesSideBySideAnywhere) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 2}; };
  SweepOptions options;
  options.jobs = 3;
  options.cores = {0, 1};
  std::string text = kTuned;
  text.replace(text.find("threads=1"), 9, "threads=2");
  sweep(text, options);
  EXPECT_EQ(runner_.most_at_once, 3u);
  for (const Json& run : written()["runs"]) EXPECT_EQ(run["alone"], run["kind"] == "row") << run;
}

TEST_F(SweepLogic, ArmsThatDifferInLengthAreTunedByTheSameRuns) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 2}; };
  SweepOptions options;
  options.jobs = 4;
  sweep("[tune]\nlr=[0.1,0.2]\nepochs=1\nrefine=0\n[axes]\nepochs=[1,2]\n[[row]]\nstrategy=\"single\"\n",
        options);
  EXPECT_EQ(runner_.launches.size(), 4u) << "two for tuning, two rows";
  std::set<std::string> folders;
  for (const Launch& launch : runner_.launches) folders.insert(launch.folder.string());
  EXPECT_EQ(folders.size(), 4u);
}

TEST_F(SweepLogic, AnotherVersionIsFlaggedAndRunAgainOnRequest) {
  runner_.act = [](const spec::RunSpec&) { return Act{.version = "0.0.0"}; };
  sweep(kArms);
  sweep(kArms);
  EXPECT_EQ(runner_.launches.size(), 0u);
  EXPECT_EQ(written()["runs"][0]["other_version"], true);
  EXPECT_NE(said_.find("made by another version"), std::string::npos) << said_;
  runner_.act = [](const spec::RunSpec&) { return Act{}; };
  SweepOptions options;
  options.again = true;
  sweep(kArms, options);
  EXPECT_EQ(runner_.launches.size(), 4u);
  EXPECT_EQ(written()["runs"][0]["other_version"], false);
  sweep(kArms, options);
  EXPECT_EQ(runner_.launches.size(), 0u) << "once is enough";
}

TEST_F(SweepLogic, ADamagedResultIsMadeAgain) {
  sweep(kArms);
  test::write_text(folder_ / "out" / written()["runs"][0]["folder"] / "result.json", "{\"task\": ");
  sweep(kArms);
  EXPECT_EQ(runner_.launches.size(), 1u) << said_;
}

}  // namespace
}  // namespace syncopate::lab
