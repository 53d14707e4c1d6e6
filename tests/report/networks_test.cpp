// Networks, predictions and simulations in a comparison.
#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/report/files/files.h"
#include "syncopate/report/files/sheets.h"
#include "syncopate/report/terminal.h"
#include "syncopate/report/words.h"
#include "tests/report/made_sweep.h"

namespace syncopate::report {
namespace {

using Json = nlohmann::ordered_json;

record::NetworkRecord made_network(const std::string& name, double scale) {
  record::NetworkRecord network;
  network.name = name;
  network.scale = scale;
  network.how = std::string("switch");
  network.congestion_control = std::string("cubic");
  network.late_ms_p99 = 0.2;
  network.hosts = {{"oregon-0", "oregon"}, {"tokyo-0", "tokyo"}};
  network.seats = {0, 1};
  network.links = {{.from = 0, .to = 1, .latency_ms = 48, .gbit = 0.01, .bytes = 2e6, .busy = 0.4},
                   {.from = 1, .to = 0, .latency_ms = 48, .gbit = 0.01, .bytes = 0, .busy = 0}};
  return network;
}

void put_on(MadeSweep& sweep, const std::string& arm, const std::string& network, double scale = 100) {
  for (MadeRun* run : sweep.runs_of(arm)) {
    run->record.network = made_network(network, scale);
    run->settings["network.name"] = network;
  }
}

/// Off by this share of what was measured.
void predict(MadeSweep& sweep, const std::string& arm, double error) {
  for (MadeRun* run : sweep.runs_of(arm)) {
    record::PredictionRecord& predicted = run->record.predicted.emplace();
    predicted.ms = (1 + error) * run->record.ms_per_iteration;
    predicted.compute_ms = run->record.compute_ms;
    predicted.exchange_ms = predicted.ms - predicted.compute_ms;
    predicted.bytes_sent_per_step = run->record.bytes_sent_per_step;
    predicted.from = std::string("this run");
  }
}

struct TwoArms : MadeSweep {
  TwoArms() {
    arm("single", "single", 1, {0.80, 0.81, 0.82}, 1000);
    arm("ddp", "ddp", 2, {0.80, 0.81, 0.82}, 1600);
  }
};

class Networks : public ::testing::Test {
 protected:
  TwoArms sweep;
};

TEST_F(Networks, AnArmCarriesItsNetworkWithTheLinksThatWereUsed) {
  put_on(sweep, "ddp", "worldwide");
  const Results results = sweep.analysed();
  const ArmResult& ddp = arm_named(results, "ddp");
  ASSERT_TRUE(ddp.network);
  EXPECT_EQ(ddp.on.name, "worldwide");
  EXPECT_EQ(ddp.on.scale, 100);
  ASSERT_EQ(ddp.network->links.size(), 1u);  // the way back carried nothing
  EXPECT_EQ(ddp.network->links[0].to, 1);
  EXPECT_FALSE(arm_named(results, "single").network);
  const Json json = to_json(results);
  EXPECT_EQ(json["arms"][1]["network"]["hosts"][1]["region"], "tokyo");
  EXPECT_EQ(json["arms"][1]["network_scale"], 100);
  EXPECT_TRUE(json["arms"][0]["network"].is_null());
  EXPECT_TRUE(json["arms"][0]["network_name"].is_null());
}

TEST_F(Networks, LinksThatNobodyCountedAreAllKept) {
  put_on(sweep, "ddp", "measured", 1);
  for (MadeRun* run : sweep.runs_of("ddp")) {
    for (auto& link : run->record.network->links) link.bytes = link.busy = record::kNan;
  }
  const Results results = sweep.analysed();
  EXPECT_EQ(arm_named(results, "ddp").network->links.size(), 2u);
  EXPECT_TRUE(to_json(results)["arms"][1]["network"]["links"][0]["bytes"].is_null());
}

TEST_F(Networks, OneWorkerNeedsNoneAndSpeedIsComparedWithIt) {
  put_on(sweep, "ddp", "worldwide");
  const Results results = sweep.analysed();
  const ArmResult& ddp = arm_named(results, "ddp");
  EXPECT_NEAR(ddp.speedup.mean, 1.6, 1e-9);
  EXPECT_FALSE(ddp.excluded);
  EXPECT_FALSE(ddp.has_flag("other-network"));
  EXPECT_EQ(check_of(ddp, "network").text, "worldwide ÷ 100; single needs none");
  EXPECT_EQ(results.advice.arm, ddp.id);
  // The foil: where nobody has a network there is nothing to check.
  const Results bare = TwoArms().analysed();
  for (const Check& check : arm_named(bare, "ddp").checks) EXPECT_NE(check.code, "network");
}

TEST_F(Networks, SpeedsOnDifferentNetworksAreNotCompared) {
  MadeSweep pair;  // nobody works alone
  pair.arm("near", "ddp", 2, {0.80, 0.81, 0.82}, 1600);
  pair.arm("far", "ddp", 2, {0.80, 0.81, 0.82}, 900);
  put_on(pair, "near", "datacenter");
  put_on(pair, "far", "worldwide");
  const Results results = pair.analysed();
  // Each is the slowest of its own network, and quality is compared all the same.
  EXPECT_NEAR(arm_named(results, "far").speedup.mean, 1, 1e-9);
  EXPECT_TRUE(arm_named(results, "far").difference);
  EXPECT_FALSE(arm_named(results, "far").excluded);
  put_on(pair, "far", "datacenter");
  EXPECT_NEAR(arm_named(pair.analysed(), "far").speedup.mean, 900.0 / 1600, 1e-9);
}

TEST_F(Networks, AnotherNetworkThanTheBaselinesIsFlagged) {
  MadeSweep three;
  three.arm("near", "ddp", 2, {0.80, 0.81, 0.82}, 1600);
  three.arm("far", "ddp", 4, {0.80, 0.81, 0.82}, 900);
  put_on(three, "near", "datacenter");
  put_on(three, "far", "worldwide");
  const Results results = three.analysed();
  EXPECT_NE(flag_text(arm_named(results, "far"), "other-network").find("datacenter"), std::string::npos);
  EXPECT_TRUE(check_of(arm_named(results, "far"), "network").differs_by_nature);
  EXPECT_FALSE(arm_named(results, "far").speedup.known());
  EXPECT_NE(arm_named(results, "far").words.find("another network"), std::string::npos);
}

TEST_F(Networks, TheAdviceIsGivenForEachNetwork) {
  sweep.arm("far", "ddp", 2, {0.80, 0.81, 0.82}, 500);
  put_on(sweep, "ddp", "datacenter", 1);
  put_on(sweep, "far", "worldwide");
  const Results results = sweep.analysed();
  EXPECT_EQ(
      results.advice.sentence,
      "It depends on the network: ddp on datacenter (1.60x) and one worker rather than worldwide ÷ 100.");
  EXPECT_EQ(results.advice.verdict, "best");
  EXPECT_EQ(results.advice.arm, arm_named(results, "ddp").id);
  put_on(sweep, "far", "datacenter", 1);
  EXPECT_EQ(sweep.analysed().advice.sentence.find("It depends"), std::string::npos);
}

TEST_F(Networks, ALateNetworkMakesTimingCountForNothing) {
  put_on(sweep, "ddp", "worldwide");
  predict(sweep, "ddp", 0.05);
  const Results good = sweep.analysed();
  EXPECT_FALSE(arm_named(good, "ddp").has_flag("late"));
  sweep.runs_of("ddp")[1]->record.network->trustworthy = false;
  sweep.runs_of("ddp")[1]->record.network->late_ms_p99 = 17.5;
  const Results late = sweep.analysed();
  const ArmResult& ddp = arm_named(late, "ddp");
  EXPECT_EQ(
      flag_text(ddp, "late"),
      "the machine was too busy to emulate the network in seed 2 (1 packet in 100 was more than 17.5 ms "
      "late): its timing does not count");
  EXPECT_FALSE(ddp.timing_counts());
  EXPECT_FALSE(ddp.pareto);
  EXPECT_EQ(good.advice.verdict, "best");
  EXPECT_EQ(late.advice.verdict, "undecided");
  EXPECT_FALSE(ddp.excluded);  // its quality counts
  ASSERT_EQ(late.prediction_errors.size(), 1u);
  EXPECT_EQ(late.prediction_errors[0].n, 0);
  EXPECT_EQ(late.prediction_errors[0].left_out, 1);
  EXPECT_NE(prediction_text(late.prediction_errors[0]).find("was off by 5.0 %, but held against a time that"),
            std::string::npos);
  EXPECT_EQ(good.prediction_errors[0].n, 1);
}

TEST_F(Networks, OneNetworkIsNotedOnceWhateverTheNumberOfHosts) {
  sweep.arm("more", "ddp", 4, {0.80, 0.81, 0.82}, 1700);
  put_on(sweep, "ddp", "worldwide");
  put_on(sweep, "more", "worldwide");
  for (MadeRun* run : sweep.runs_of("more")) run->record.network->hosts.push_back({"seoul-0", "seoul"});
  const auto note = [](const Results& results) {
    for (const Note& each : results.notes) {
      if (each.code == "network") return each.text;
    }
    return std::string();
  };
  EXPECT_EQ(note(sweep.analysed()),
            "Workers sat on the network worldwide ÷ 100 (2 to 3 hosts in 2 to 3 regions, emulated on one "
            "machine).");
  put_on(sweep, "more", "worldwide", 10);
  EXPECT_NE(note(sweep.analysed()).find("different networks"), std::string::npos);
}

TEST_F(Networks, ArmsOfAFolderAreToldApartByTheirNetwork) {
  sweep.arm("far", "ddp", 2, {0.80, 0.81, 0.82}, 500);
  put_on(sweep, "ddp", "datacenter", 1);
  put_on(sweep, "far", "worldwide", 1);
  sweep.planned = false;
  const Results results = sweep.analysed();
  EXPECT_EQ(arm_named(results, "ddp, on worldwide").on.name, "worldwide");
  EXPECT_EQ(arm_named(results, "ddp, on datacenter").on.name, "datacenter");
}

TEST_F(Networks, PredictionsAreHeldAgainstTheMean) {
  sweep.arm("int8", "ddp", 2, {0.80, 0.81, 0.82}, 1700);
  predict(sweep, "ddp", -0.25);
  predict(sweep, "int8", 0.08);
  const Results results = sweep.analysed();
  const ArmResult& ddp = arm_named(results, "ddp");
  ASSERT_TRUE(ddp.predicted);
  EXPECT_NEAR(ddp.predicted->error, -0.25, 1e-9);
  EXPECT_NEAR(ddp.predicted->ms, 0.75 * ddp.ms.mean, 1e-9);
  EXPECT_FALSE(arm_named(results, "single").predicted);
  ASSERT_EQ(results.prediction_errors.size(), 1u);
  const PredictionSummary& errors = results.prediction_errors[0];
  EXPECT_EQ(errors.n, 2);
  EXPECT_NEAR(errors.median, 0.165, 1e-9);
  EXPECT_NEAR(errors.p90, 0.233, 1e-9);
  EXPECT_EQ(errors.within_10, 1);
  EXPECT_EQ(errors.within_20, 1);
  const Json json = to_json(results);
  EXPECT_EQ(json["predictions"]["points"].size(), 2u);
  EXPECT_NEAR(json["arms"][1]["predicted"]["error"].get<double>(), -0.25, 1e-9);
  EXPECT_TRUE(json["arms"][0]["predicted"].is_null());
}

TEST_F(Networks, TablesHaveTheirColumnsWhereThereIsData) {
  const Results bare = sweep.analysed();
  EXPECT_EQ(markdown_text(bare).find("predicted"), std::string::npos);
  EXPECT_EQ(terminal_table(bare).find("network"), std::string::npos);
  put_on(sweep, "ddp", "worldwide");
  predict(sweep, "ddp", 0.125);
  const Results results = sweep.analysed();
  EXPECT_NE(markdown_text(results).find("| worldwide ÷ 100 |"), std::string::npos);
  EXPECT_NE(markdown_text(results).find("| +12.5 % |"), std::string::npos);
  EXPECT_NE(terminal_table(results).find("+12.5 %"), std::string::npos);
  const auto cell = [](const Sheet& sheet, size_t row, const std::string& name) {
    const auto at = std::find(sheet.head.begin(), sheet.head.end(), name) - sheet.head.begin();
    return sheet.rows.at(row).at(static_cast<size_t>(at));
  };
  for (const Sheet& sheet : {arms_sheet(results), runs_sheet(results)}) {
    const size_t row = sheet.name == "arms" ? 1 : 3;
    EXPECT_EQ(cell(sheet, row, "network"), Cell(std::string("worldwide")));
    EXPECT_EQ(cell(sheet, row, "network_scale"), Cell(100.0));
    EXPECT_NEAR(std::get<double>(cell(sheet, row, "prediction_error")), 0.125, 1e-9);
    EXPECT_EQ(cell(sheet, 0, "network"), Cell());
    EXPECT_EQ(cell(sheet, 0, "predicted_ms"), Cell());
  }
}

class Simulations : public ::testing::Test {
 protected:
  /// Makes its runs what a simulator writes: no scores, no hashes.
  void simulate(const std::string& arm) {
    for (MadeRun* run : sweep.runs_of(arm)) {
      run->record.simulated = true;
      run->record.eval.reset();
      run->record.start_hash.clear();
      run->record.data_hash.clear();
      run->record.test_hash.clear();
      run->record.train_loss = 0;
      for (double& loss : run->losses) loss = 0;
    }
  }
  TwoArms sweep;
};

TEST_F(Simulations, AreNoPartOfTheAdvice) {
  sweep.arm("played", "ddp", 2, {0.99, 0.99, 0.99}, 9000);
  const Results measured = sweep.analysed();
  EXPECT_EQ(measured.advice.arm, arm_named(measured, "played").id);  // the foil
  simulate("played");
  const Results results = sweep.analysed();
  EXPECT_EQ(results.advice.arm, arm_named(results, "ddp").id);
  const ArmResult& played = arm_named(results, "played");
  EXPECT_EQ(played.family, "simulated");
  EXPECT_TRUE(played.has_flag("simulated"));
  EXPECT_FALSE(played.excluded);
  EXPECT_FALSE(played.pareto);
  EXPECT_FALSE(played.speedup.known());  // there is no simulated worker to compare it with
  EXPECT_TRUE(to_json(results)["arms"][2]["simulated"].get<bool>());
}

TEST_F(Simulations, AloneAreComparedWithEachOtherAndSaySo) {
  simulate("single");
  simulate("ddp");
  const Results results = sweep.analysed();
  EXPECT_NEAR(arm_named(results, "ddp").speedup.mean, 1.6, 1e-9);
  EXPECT_EQ(arm_named(results, "ddp").family, "synchronous");
  EXPECT_EQ(results.advice.verdict, "nothing");
  EXPECT_EQ(results.advice.sentence,
            "All of these are simulated: nothing was trained, so they say nothing about quality. By the "
            "simulation ddp is the fastest: 1.60x as fast as one worker.");
}

TEST_F(Simulations, AreHeldAgainstTheRunOfTheSameSettings) {
  sweep.arm("played", "ddp", 2, {0, 0, 0}, 1280);
  simulate("played");
  const Results results = sweep.analysed();
  ASSERT_EQ(results.predictions.size(), 1u);
  EXPECT_EQ(results.predictions[0].series, "simulated");
  EXPECT_EQ(results.predictions[0].arm, arm_named(results, "ddp").id);
  EXPECT_NEAR(results.predictions[0].error, 0.25, 1e-9);
  for (MadeRun* run : sweep.runs_of("played")) run->settings["train.global_batch"] = "64";
  EXPECT_TRUE(sweep.analysed().predictions.empty());
}

TEST_F(Simulations, OfAFolderAreNotTakenForTheirTwin) {
  sweep.arm("played", "ddp", 2, {0, 0, 0}, 1280);
  simulate("played");
  sweep.planned = false;
  const Results results = sweep.analysed();
  EXPECT_EQ(results.arms.size(), 3u);
  EXPECT_TRUE(arm_named(results, "ddp, simulated").simulated);
  EXPECT_FALSE(arm_named(results, "ddp").simulated);
}

Json made_advice() {
  const auto row = [](const char* strategy, const char* codec, double predicted, Json measured) {
    return Json{{"strategy", strategy},
                {"codec", codec},
                {"every", 1},
                {"workers", 4},
                {"hosts", {0, 1, 2, 3}},
                {"predicted", {{"ms", predicted}, {"compute_ms", 40}}},
                {"measured", measured},
                {"worth_it", true},
                {"why", ""}};
  };
  return {{"format", "syncopate-advice-1"},
          {"network", "worldwide"},
          {"scale", 100},
          {"workers", {4}},
          {"rows",
           {row("ddp", "int8", 110, {{"ms", 100}}), row("ddp", "none", 400, {{"ms", 500}}),
            row("gather-scatter", "none", 900, nullptr)}},
          {"best", 0}};
}

Json made_placement() {
  return {{"format", "syncopate-placement-1"},
          {"stages", {{0, 1}, {2, 3}}},
          {"cost_s", 2.0},
          {"random_s", 5.0},
          {"network", "two-sites"}};
}

TEST(Attached, AFolderWithoutRunsShowsAdviceAndPlacements) {
  test::TempDir folder;
  EXPECT_THROW(analyse(folder.path()), DataError);  // the foil: nothing at all
  test::write_text(folder / "advice.json", made_advice().dump());
  test::write_text(folder / "two.placement.json", made_placement().dump());
  const Results results = analyse(folder.path());
  EXPECT_TRUE(results.arms.empty());
  ASSERT_EQ(results.predictions.size(), 2u);  // one row did not run
  EXPECT_EQ(results.predictions[0].name, "ddp, int8, 4 workers");
  EXPECT_EQ(results.predictions[0].family, "compressed");
  EXPECT_EQ(results.predictions[0].network, "worldwide ÷ 100");
  EXPECT_NEAR(results.predictions[0].error, 0.1, 1e-9);
  EXPECT_NEAR(results.predictions[1].error, -0.2, 1e-9);
  EXPECT_EQ(
      results.advice.sentence,
      "By prediction ddp, int8, 4 workers is the fastest on worldwide ÷ 100: 110 ms per iteration. Of 2 "
      "that ran, predictions were off by 15.0 % (median) and 19.0 % (90th percentile).");
  EXPECT_EQ(
      results.advice.paragraph,
      "two.placement.json: 2 stages x 2 replicas on two-sites, predicted 2 s per iteration, 2.50x as fast "
      "as random layouts.");
  const Json json = to_json(results);
  EXPECT_EQ(json["placements"][0]["stages"][1][0], 2);
  EXPECT_EQ(json["advice_check"]["rows"][0]["family"], "compressed");
  write_results(folder.path(), results, {});
  EXPECT_TRUE(std::filesystem::exists(folder / "report.html"));
  EXPECT_NE(terminal_table(results).find("By prediction"), std::string::npos);
}

TEST(Attached, ACheckOnALateNetworkDoesNotCount) {
  test::TempDir folder;
  Json advice = made_advice();
  advice["rows"][1]["measured"]["trustworthy"] = false;
  advice["rows"][0]["measured"]["trustworthy"] = true;
  test::write_text(folder / "advice.json", advice.dump());
  const Results results = analyse(folder.path());
  EXPECT_TRUE(results.predictions[0].why_not.empty());
  EXPECT_FALSE(results.predictions[1].why_not.empty());
  EXPECT_EQ(results.prediction_errors[0].n, 1);
  EXPECT_NEAR(results.prediction_errors[0].median, 0.1, 1e-9);
}

TEST(Attached, DamagedOnesAreNamedAndLeftOut) {
  test::TempDir folder;
  test::write_text(folder / "good.placement.json", made_placement().dump());
  test::write_text(folder / "advice.json", "{");
  Json placement = made_placement();
  placement["stages"][0][0] = "tokyo";
  test::write_text(folder / "bad.placement.json", placement.dump());
  const Results results = analyse(folder.path());
  EXPECT_EQ(results.placements.size(), 1u);
  EXPECT_FALSE(results.advice_check);
  ASSERT_EQ(results.notes.size(), 1u);
  EXPECT_EQ(
      results.notes[0].text,
      "could not be read and are left out: advice.json (it is not JSON) and bad.placement.json (a device of "
      "a stage is not a number from 0)");
}

TEST(Attached, ANewFileIsNoticed) {
  TwoArms sweep;
  sweep.write();
  Reader reader(sweep.path());
  EXPECT_TRUE(reader.refresh());
  EXPECT_FALSE(reader.refresh());
  test::write_text(sweep.path() / "advice.json", made_advice().dump());
  EXPECT_TRUE(reader.refresh());
  EXPECT_TRUE(reader.results().advice_check);
  EXPECT_FALSE(reader.refresh());
}

}  // namespace
}  // namespace syncopate::report
