#include "syncopate/plan/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::plan {
namespace {

/// A model of 4 MB whose step takes `seconds` on a batch of 64.
sim::Profile profile_of(double seconds) {
  sim::Profile profile;
  profile.times = {
      {.batch = 8, .forward_s = seconds / 24, .backward_s = seconds / 12, .peak_memory = 1000},
      {.batch = 64, .forward_s = seconds / 3, .backward_s = 2 * seconds / 3, .peak_memory = 2000}};
  for (int i = 0; i < 4; ++i) profile.parameters.push_back({.name = std::to_string(i), .shape = {512, 512}});
  for (const spec::CodecInfo& codec : spec::codecs())
    profile.codecs.push_back({.name = std::string(codec.name), .encode_s = 1e-9, .decode_s = 1e-9});
  profile.training_examples = 6400;
  return profile;
}

AdviceRequest request_for(double latency_ms, double gbit, double seconds,
                          std::vector<int64_t> workers = {2, 4}) {
  std::vector<network::Host> hosts;
  for (int host = 0; host < 6; ++host)
    hosts.push_back({.name = std::to_string(host), .region = std::string("r"), .price_hour = 2});
  AdviceRequest request;
  request.topology = network::Topology(
      "test", hosts, std::vector<network::Link>(36, {.latency_ms = latency_ms, .gbit = gbit}));
  request.base.train.global_batch = 64;
  request.base.complete();
  request.workers = std::move(workers);
  request.profiles[1] = profile_of(seconds);
  return request;
}

const AdviceRow& row_of(const Advice& advice, const std::string& label, int64_t workers) {
  const auto found = std::find_if(advice.rows.begin(), advice.rows.end(), [&](const AdviceRow& row) {
    return row.spec.label() == label && row.spec.comm.workers == workers;
  });
  if (found == advice.rows.end()) throw std::runtime_error("no row " + label);
  return *found;
}

TEST(Advice, OnAFastNetworkDdpIsNearTheBest) {
  const Advice advice = advise(request_for(0.05, 10, 1));
  const AdviceRow& ddp = row_of(advice, "ddp", 4);
  EXPECT_GT(ddp.predicted.examples_per_s, 0.95 * advice.rows.front().predicted.examples_per_s);
  EXPECT_TRUE(ddp.worth_it) << ddp.why;
  EXPECT_FALSE(row_of(advice, "ddp, int8", 4).worth_it);  // nothing to gain
}

TEST(Advice, OnASlowNetworkRareAveragesAndCodecsLead) {
  const Advice advice = advise(request_for(20, 0.01, 1));
  const AdviceRow& best = advice.rows.front();
  EXPECT_TRUE(best.spec.codec.name != "none" ||
              spec::strategy_info(best.spec.strategy.name).rhythm == spec::Rhythm::kLocal)
      << best.spec.label();
  const AdviceRow& ddp = row_of(advice, "ddp", 4);
  EXPECT_FALSE(ddp.worth_it);
  EXPECT_NE(ddp.why.find("one worker is faster"), std::string::npos) << ddp.why;
  EXPECT_NE(ddp.why.find("0.01 Gbit/s"), std::string::npos) << ddp.why;
  EXPECT_LT(row_of(advice, "all-reduce, int8", 2).predicted.bytes_per_step,
            0.3 * row_of(advice, "all-reduce", 2).predicted.bytes_per_step);
}

TEST(Advice, ComparesStagesWithOneWorkerThatHoldsTheWholeModel) {
  AdviceRequest request = request_for(1, 1, 1, {2, 3, 4});
  request.base.pipeline.stages = 2;
  for (int i = 0; i < 4; ++i)
    request.profiles[1].layers.push_back(
        {.name = "l", .share = 0.25, .parameters = 512 * 512, .output_bytes = 1e4, .channels = 128});
  const Advice advice = advise(request);
  EXPECT_EQ(advice.rows[advice.alone].spec.pipeline.stages, 1);
  EXPECT_EQ(row_of(advice, "ddp, 2 stages", 4).spec.pipeline.stages, 2);
  EXPECT_GT(row_of(advice, "ddp, 2 stages", 4).predicted.ms, 0);
  EXPECT_LT(row_of(advice, "ddp, 2 stages", 4).predicted.ms, row_of(advice, "ddp, 2 stages", 2).predicted.ms);
  for (const AdviceRow& row : advice.rows) EXPECT_NE(row.spec.comm.workers, 3) << "no multiple of two stages";
}

TEST(Advice, SaysWhenOneWorkerIsFaster) {
  AdviceRequest request = request_for(300, 0.0001, 0.01);
  request.base.strategy.every = 2;
  const Advice advice = advise(request);
  EXPECT_EQ(advice.alone, 0u);
  EXPECT_NE(advice.rows.front().why.find("one worker is faster"), std::string::npos);
  EXPECT_NE(advise(request_for(0.05, 10, 1)).alone, 0u);
}

TEST(Advice, ComparesAtOneGlobalBatchAndRanksBySpeed) {
  const Advice advice = advise(request_for(1, 1, 0.5));
  std::set<std::string> strategies, codecs;
  for (size_t i = 0; i < advice.rows.size(); ++i) {
    const AdviceRow& row = advice.rows[i];
    EXPECT_EQ(row.spec.examples_per_step(), 64) << row.spec.label();
    EXPECT_FALSE(row.why.empty());
    EXPECT_GT(row.price_epoch, 0);
    if (i > 0) {
      EXPECT_LE(row.predicted.examples_per_s, advice.rows[i - 1].predicted.examples_per_s);
    }
    strategies.insert(row.spec.strategy.name);
    codecs.insert(row.spec.codec.name);
  }
  EXPECT_EQ(codecs.size(), spec::codecs().size());
  // What lives in one memory cannot sit on several hosts, and it is said.
  EXPECT_FALSE(strategies.contains("hogwild"));
  EXPECT_TRUE(strategies.contains("parameter-server"));
  EXPECT_TRUE(std::any_of(advice.left_out.begin(), advice.left_out.end(),
                          [](const std::string& why) { return why.starts_with("hogwild"); }));
}

TEST(Advice, WhatIsRecommendedIsWorthItHoweverFastTheFastestIs) {
  // Rare averages are far ahead; ddp still beats one worker.
  const Advice advice = advise(request_for(2, 0.1, 1));
  const AdviceRow& ddp = row_of(advice, "ddp", 2);
  const double gain = ddp.predicted.examples_per_s / advice.rows[advice.alone].predicted.examples_per_s;
  ASSERT_GT(gain, 1.05);
  ASSERT_LT(2 * ddp.predicted.examples_per_s, advice.rows.front().predicted.examples_per_s);
  EXPECT_TRUE(ddp.worth_it) << ddp.why;
  for (const AdviceRow& row : advice.rows) {
    if (!row.worth_it) {
      EXPECT_TRUE(row.why.find("faster") != std::string::npos) << row.spec.label() << ": " << row.why;
    }
  }
}

TEST(Advice, OneWorkerAloneIsComparedWithNothing) {
  const Advice advice = advise(request_for(1, 1, 0.5, {1}));
  ASSERT_EQ(advice.rows.size(), 1u);
  EXPECT_EQ(advice.rows[0].why, "nothing else was looked at");
}

TEST(Advice, WhatCannotRunIsSaidOnceForEachReason) {
  const Advice advice = advise(request_for(1, 1, 0.5));
  const auto about = [&](const std::string& name) {
    return std::count_if(advice.left_out.begin(), advice.left_out.end(),
                         [&](const std::string& why) { return why.starts_with(name); });
  };
  EXPECT_EQ(about("data-parallel with 2, 4 workers: "), 1);
  EXPECT_EQ(about("data-parallel"), 1);  // not once for every codec
}

TEST(Advice, ABoundOnStalenessIsNotPredicted) {
  AdviceRequest request = request_for(1, 1, 0.5);
  request.base.strategy.staleness = std::string("3");
  const auto is_server = [](const AdviceRow& row) { return row.spec.strategy.name == "parameter-server"; };
  const Advice bounded = advise(request);
  EXPECT_TRUE(std::none_of(bounded.rows.begin(), bounded.rows.end(), is_server));
  EXPECT_TRUE(std::any_of(bounded.left_out.begin(), bounded.left_out.end(), [](const std::string& why) {
    return why.find("a bound of 3 on staleness") != std::string::npos;
  }));
  for (const char* other : {"0", "inf"}) {
    request.base.strategy.staleness = std::string(other);
    const Advice advice = advise(request);
    EXPECT_TRUE(std::any_of(advice.rows.begin(), advice.rows.end(), is_server)) << other;
  }
}

TEST(Advice, ChecksTheBestDdpAndTheWorst) {
  Advice advice = advise(request_for(20, 0.01, 1));
  const auto rows = rows_to_check(advice, 2);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], 0u);
  EXPECT_EQ(rows[1], 1u);
  EXPECT_EQ(advice.rows[rows[2]].spec.label(), "ddp");
  EXPECT_EQ(rows[3], advice.rows.size() - 1);
  EXPECT_FALSE(advice.error_at(0.5));
  advice.rows[0].measured = Checked{.ms = advice.rows[0].predicted.ms / 1.1};
  advice.rows[1].measured = Checked{.ms = advice.rows[1].predicted.ms / 0.7};
  advice.rows[2].measured = Checked{.ms = 1, .trustworthy = false};  // does not count
  EXPECT_NEAR(*advice.error_at(0), 0.1, 1e-9);
  EXPECT_NEAR(*advice.error_at(1), 0.3, 1e-9);
  const auto json = to_json(advice, request_for(20, 0.01, 1));
  EXPECT_EQ(json["format"], "syncopate-advice-1");
  EXPECT_NEAR(json["rows"][0]["error"].get<double>(), 0.1, 1e-9);
  EXPECT_TRUE(json["rows"][3]["measured"].is_null());
}

}  // namespace
}  // namespace syncopate::plan
