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
  std::function<void(const spec::RunSpec&)> before_start = [](const spec::RunSpec&) {};
  std::vector<Launch> launches;
  size_t at_once = 0, most_at_once = 0, stopped = 0;

  std::unique_ptr<RunInProgress> start(const Launch& launch) override {
    before_start(launch.spec);
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
    void stop() override {
      stopped_ = true;
      ++runner_.stopped;
    }

   private:
    Pretended& runner_;
    Launch launch_;
    Act act_;
    bool stopped_ = false;
  };
};

class SweepLogic : public testing::Test {
 protected:
  /// Into `out` of the test's folder, or one that is spelled otherwise.
  SweepResult sweep(const std::string& text, SweepOptions options = {}, std::filesystem::path out = {}) {
    test::write_text(folder_ / "x.toml", text);
    options.say = [this](const std::string& line) { said_ += line + "\n"; };
    runner_.launches.clear();
    runner_.most_at_once = 0;
    return lab::sweep(read_experiment(folder_ / "x.toml"), out.empty() ? folder_ / "out" : out, options,
                      runner_);
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

TEST_F(SweepLogic, ATuningRunThatFailedIsToldAndCounted) {
  const std::string text =
      "[tune]\nlr=[0.001,0.01,0.1]\nrefine=0\n[[row]]\nname=\"A\"\nstrategy=\"single\"\n";
  const auto like = [](int exit_code, int signal) {
    return [=](const spec::RunSpec& spec) {
      const bool bad = spec.task.test_limit == 1 && spec.optim.lr == 0.1;
      return bad ? Act{.exit_code = exit_code, .signal = signal} : Act{.validation = spec.optim.lr};
    };
  };
  runner_.act = like(137, 9);
  EXPECT_EQ(sweep(text).exit_code, 137) << "0.1 might have been chosen";
  EXPECT_EQ(written()["tuning"][0]["best"], 0.01);
  EXPECT_EQ(written()["tuning"][0]["failed"], 1);
  EXPECT_NE(said_.find("A: lr 0.01 is best of 2 on the validation split; 1 failed"), std::string::npos)
      << said_;
  EXPECT_NE(said_.find("warning: A: 1 of its tuning runs failed"), std::string::npos) << said_;
  EXPECT_TRUE(states().ends_with("done")) << "the row itself is there";
  said_.clear();
  runner_.act = like(5, 0);
  EXPECT_EQ(sweep(text).exit_code, 0) << "the foil: a rate that diverges is no rate";
  EXPECT_EQ(written()["tuning"][0]["failed"], 0);
  EXPECT_NE(said_.find("is best of 2 on"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("tuning runs failed"), std::string::npos) << said_;
}

const std::string kSame =
    "[settings]\nstrategy=\"single\"\nthreads=1\nvalidation=0.1\n[axes]\nseed=[1,2]\n[[row]]\nname="
    "\"published\"\nlr="
    "0.01\n[[row]]\nname=\"tuned\"\n[tune]\nlr=[0.01,0.1]\nrefine=0\n";

TEST_F(SweepLogic, ArmsThatTuningMakesTheSameBothStay) {
  const auto rows = [&] {
    std::vector<Json> found;
    const Json sweep_json = written();
    for (const Json& run : sweep_json["runs"]) {
      if (run["kind"] == "row") found.push_back(run);
    }
    return found;
  };
  runner_.act = [](const spec::RunSpec& spec) { return Act{.validation = -spec.optim.lr}; };
  EXPECT_EQ(sweep(kSame).exit_code, 0);
  EXPECT_EQ(runner_.launches.size(), 4u) << "two for tuning; two seeds, once";
  const std::vector<Json> same = rows();
  ASSERT_EQ(same.size(), 4u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(same[2 + i]["folder"], same[i]["folder"]);
    EXPECT_EQ(same[2 + i]["same_as"], same[i]["id"]);
    EXPECT_EQ(same[2 + i]["state"], "done");
    EXPECT_EQ(same[2 + i]["reused"], false) << "it was not there before";
    EXPECT_FALSE(same[i].contains("same_as"));
  }
  EXPECT_NE(said_.find("tuned, seed 1: the same run as published, seed 1"), std::string::npos) << said_;
  sweep(kSame);
  EXPECT_EQ(runner_.launches.size(), 0u);
  EXPECT_EQ(rows()[3]["state"], "done");
  std::filesystem::remove_all(folder_ / "out");
  runner_.act = [](const spec::RunSpec& spec) {
    return spec.task.test_limit == 1 ? Act{.validation = -spec.optim.lr} : Act{.exit_code = 3};
  };
  EXPECT_EQ(sweep(kSame).exit_code, 3);
  EXPECT_EQ(runner_.launches.size(), 4u) << "it fails once";
  EXPECT_EQ(rows()[3]["state"], "failed");
  std::filesystem::remove_all(folder_ / "out");
  runner_.act = [](const spec::RunSpec& spec) { return Act{.validation = spec.optim.lr}; };
  sweep(kSame);
  EXPECT_EQ(runner_.launches.size(), 6u) << "the foil: another rate";
  EXPECT_NE(rows()[2]["folder"], rows()[0]["folder"]);
  EXPECT_FALSE(rows()[2].contains("same_as"));
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

TEST_F(SweepLogic, WhatRanSideBySideStaysMarked) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 2}; };
  SweepOptions beside;
  beside.jobs = 2;
  beside.cores = {3, 5};
  sweep(kArms, beside);
  std::string one_rate = kArms;
  one_rate.replace(one_rate.find("0.1,0.2"), 7, "0.1");
  sweep(one_rate);
  EXPECT_EQ(written()["runs"].size(), 2u);
  sweep(kArms);
  EXPECT_EQ(runner_.launches.size(), 0u);
  for (const Json& run : written()["runs"]) EXPECT_EQ(run["alone"], false) << "after a sweep of other runs";
  test::write_text(folder_ / "out/sweep.json", "{");
  sweep(kArms);
  EXPECT_EQ(runner_.launches.size(), 0u);
  for (const Json& run : written()["runs"]) EXPECT_EQ(run["alone"], false) << "after damage";
  // The same once more, alone: all is as if it had never been otherwise.
  std::filesystem::rename(folder_ / "out/inputs.json", folder_ / "inputs.json");
  std::filesystem::remove_all(folder_ / "out");
  std::filesystem::create_directories(folder_ / "out");
  std::filesystem::rename(folder_ / "inputs.json", folder_ / "out/inputs.json");
  sweep(kArms);
  EXPECT_EQ(runner_.launches.size(), 4u);
  for (const Json& run : written()["runs"]) EXPECT_EQ(run["alone"], true) << "the foil: made anew";
}

TEST_F(SweepLogic, ARunThatWasStoppedSideBySideStaysMarked) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 3}; };
  SweepOptions beside;
  beside.jobs = 2;
  beside.cores = {3, 5};
  beside.stop_requested = [this] { return runner_.launches.size() == 2; };
  EXPECT_EQ(sweep(kArms, beside).exit_code, 130);
  EXPECT_EQ(states(), "stopped planned stopped planned");
  EXPECT_EQ(sweep(kArms).exit_code, 0);
  const Json runs = written()["runs"];
  EXPECT_EQ(runs[0]["alone"], false);
  EXPECT_EQ(runs[2]["alone"], false);
  EXPECT_EQ(runs[1]["alone"], true) << "the foil: begun alone";
}

TEST_F(SweepLogic, WhatTheSystemRefusesFailsOneRunAlone) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 2}; };
  runner_.before_start = [](const spec::RunSpec& spec) {
    if (spec.optim.lr == 0.1 && spec.train.seed == 1)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  SweepOptions options;
  options.jobs = 2;
  options.cores = {3, 5};
  EXPECT_EQ(sweep(kArms, options).exit_code, 70);
  EXPECT_EQ(states(), "failed done done done");
  EXPECT_NE(written()["runs"][0]["message"].get<std::string>().find("it could not be started: "),
            std::string::npos);
  runner_.before_start = [](const spec::RunSpec&) {};
  EXPECT_EQ(sweep(kArms, options).exit_code, 0);
  EXPECT_EQ(runner_.launches.size(), 1u) << "the foil: nothing is refused";
}

TEST_F(SweepLogic, DataThatCannotBeReadFailsItsRunsAlone) {
  for (const char* name : {"good", "bad"}) {
    std::filesystem::create_directories(folder_ / name);
    test::write_text(folder_ / name / "a.csv", "one");
  }
  std::filesystem::create_symlink(folder_ / "bad/loop", folder_ / "bad/loop");  // nobody can look at it
  const auto row = [&](const std::string& name) {
    return "[[row]]\ntask=\"csv\"\ntext=\"a\"\nlabel=\"b\"\nstrategy=\"single\"\ndata=\"" +
           (folder_ / name).string() + "\"\n";
  };
  EXPECT_EQ(sweep(row("bad") + row("good")).exit_code, 3);
  EXPECT_EQ(states(), "failed done");
  EXPECT_NE(written()["runs"][0]["message"].get<std::string>().find("cannot read "), std::string::npos)
      << written()["runs"][0]["message"];
}

TEST_F(SweepLogic, RunsEndInOrderWhereTheSweepItselfCannotGoOn) {
  runner_.act = [](const spec::RunSpec&) { return Act{.looks = 1000}; };
  SweepOptions options;
  options.stop_requested = [this]() -> bool {
    if (runner_.launches.empty()) return false;
    throw std::runtime_error("no room");
  };
  EXPECT_THROW(sweep(kArms, options), std::runtime_error);
  EXPECT_EQ(runner_.stopped, 1u);
  EXPECT_EQ(runner_.at_once, 0u) << "waited for";
}

TEST_F(SweepLogic, AnotherSpellingOfTheFolderIsTheSameFolder) {
  sweep(kPhases, {}, folder_ / "out");
  EXPECT_EQ(runner_.launches.size(), 4u);
  const auto here = std::filesystem::relative(folder_ / "out");
  sweep(kPhases, {}, here);
  EXPECT_EQ(runner_.launches.size(), 0u) << here << said_;
  std::filesystem::rename(folder_ / "out", folder_ / "moved");
  sweep(kPhases, {}, folder_ / "moved");
  EXPECT_EQ(runner_.launches.size(), 0u) << "moved" << said_;
  std::string other = kPhases;
  other.replace(other.find("task=\"mlm\""), 10, "task=\"mlm\"\nlr=0.1");
  sweep(other, {}, folder_ / "moved");
  EXPECT_EQ(runner_.launches.size(), 4u) << "the foil: another phase";
}

TEST_F(SweepLogic, ARunThatGoesOnKnowsItsStartByTheOldSpelling) {
  runner_.act = [](const spec::RunSpec& spec) {
    return spec.task.name == "mlm" ? Act{} : Act{.exit_code = 137, .signal = 9, .checkpoint = true};
  };
  sweep(kPhases);
  const std::string before = runner_.launches[2].spec.model.init_from;
  runner_.act = [](const spec::RunSpec&) { return Act{}; };
  sweep(kPhases, {}, std::filesystem::relative(folder_ / "out"));
  ASSERT_EQ(runner_.launches.size(), 2u) << said_;
  EXPECT_TRUE(runner_.launches[0].resume);
  EXPECT_EQ(runner_.launches[0].spec.model.init_from, before) << "train refuses to go on from another";
}

TEST_F(SweepLogic, SecondsOfARunAreKeptAndNotTakenFromDates) {
  const auto seconds = [&] {
    const Plan plan = survey(read_experiment(folder_ / "x.toml"), folder_ / "out", false);
    return plan.runs.front().seconds;
  };
  sweep(kArms);
  const std::filesystem::path run = folder_ / "out" / written()["runs"][0]["folder"];
  auto record = Json::parse(test::read_text(run / "result.json"));
  record["provenance"]["date"] = "2001-01-01T00:00:00Z";  // copied, say, or touched
  record["train_seconds"] = 7;
  test::write_text(run / "result.json", record.dump());
  EXPECT_LT(seconds(), 5) << "what the sweep saw";
  EXPECT_GT(seconds(), 0);
  std::filesystem::remove(folder_ / "out/inputs.json");
  EXPECT_EQ(seconds(), 7) << "the foil: nobody saw it";
}

TEST_F(SweepLogic, RunsThatWereDoneBeforeAreToldOnce) {
  runner_.act = [](const spec::RunSpec& spec) { return Act{.validation = -std::abs(spec.optim.lr - 0.01)}; };
  const std::string coarse = std::string(kTuned).replace(kTuned.find("seeds="), 0, "refine=0\n");
  sweep(coarse);
  EXPECT_EQ(said_.find("done before"), std::string::npos) << said_;
  std::filesystem::remove_all(folder_ / "out" / written()["runs"][0]["folder"]);
  sweep(kTuned);
  EXPECT_NE(said_.find("5 of 6 runs were done before"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("of 10 runs were done before"), std::string::npos) << said_;
  sweep(kTuned);
  EXPECT_NE(said_.find("10 of 10 runs were done before"), std::string::npos) << "the foil: " << said_;
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
