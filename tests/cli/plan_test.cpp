#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/sim/profile.h"
#include "tests/support/support.h"

namespace syncopate::cli {
namespace {

class PlanCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_text(two_, R"(
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
between = ["a", "b"]
latency_ms = 1
gbit = 1
)");
  }

  static std::string printed_by(const Command& command) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    try {
      command();
    } catch (...) {
      testing::internal::GetCapturedStdout();
      testing::internal::GetCapturedStderr();
      throw;
    }
    testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  }

  nlohmann::json plan(const std::string& flags, const std::string& network = "") const {
    Program program{.app = CLI::App{kPurpose, "syncopate"}};
    const Command command = add_plan(program);
    const std::string out = (folder_ / "plan.json").string();
    program.app.parse("plan --network " + (network.empty() ? two_.string() : network) + " --out " + out +
                      " " + flags);
    printed_by(command);
    return nlohmann::json::parse(test::read_text(out));
  }

  void refuses(const std::string& flags, const std::string& words, const std::string& network = "") const {
    try {
      plan(flags, network);
      ADD_FAILURE() << flags << " was taken";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  static double weights(const nlohmann::json& plan) {
    double sum = 0;
    for (const auto& stage : plan.at("memory")) sum += stage.at("weights").get<double>();
    return sum;
  }

  const test::TempDir folder_;
  const std::filesystem::path two_ = folder_ / "two.toml";
};

TEST_F(PlanCommand, TakesBothSizesOrNone) {
  refuses("--gradient-gb 1", "--activation-gb is missing");
  refuses("--activation-gb 1", "--gradient-gb is missing");
  refuses("--gradient-gb 1 --activation-gb 1e300", "--activation-gb must be from 0 to 1e+06");
  refuses("--gradient-gb nan --activation-gb 1", "--gradient-gb must be");
  for (const char* layers : {"-3", "0", "100000"})
    refuses(std::string("--gradient-gb 1 --activation-gb 1 --layers ") + layers,
            "--layers must be from 1 to");
  refuses("--profile x.json --global-batch 8 --layers 4", "stand for a model");
  EXPECT_EQ(weights(plan("--gradient-gb 1 --activation-gb 0 --stages 2 --replicas 1")), 2e9);
}

TEST_F(PlanCommand, ThePublishedExampleIsAsLargeInEveryShape) {
  // One stage's and one replica's sizes where the shape is given, else those of all 8.
  EXPECT_NEAR(weights(plan("--compute-s 5")), 8 * 0.65e9, 1e3);
  EXPECT_NEAR(weights(plan("--compute-s 5 --gradient-gb 0.65 --activation-gb 0.4712")), 0.65e9, 1e3);
  EXPECT_NEAR(weights(plan("--stages 2 --replicas 1")), 2 * 0.65e9, 1e3);
}

TEST_F(PlanCommand, RefusesScalesOutOfReason) {
  for (const char* scale : {"1e300", "1e-300", "1e18", "0", "-1"}) {
    refuses(std::string("--scale ") + scale, "--scale", "worldwide");
    refuses(std::string("--stages 2 --replicas 1 --scale ") + scale, "--scale");
  }
  EXPECT_GT(plan("--stages 2 --replicas 1 --scale 1e8").at("cost_s").get<double>(), 1e8);
}

TEST_F(PlanCommand, WhatItWritesIsSimulatedAsItWasPlayedOut) {
  sim::Profile profile{.task = std::string("supersense"), .model = std::string("bert-tiny")};
  profile.optimizer = std::string("adamw");
  profile.cores = 2;
  profile.times = {{.batch = 2, .forward_s = 0.02, .backward_s = 0.04, .update_s = 0.001}};
  for (int i = 0; i < 2; ++i) {
    profile.layers.push_back(
        {.name = std::string("l"), .share = 0.5, .parameters = 10000, .output_bytes = 1e5, .channels = 128});
    profile.parameters.push_back({.name = std::string("w"), .shape = {100, 100}, .layer = 1 - i});
  }
  sim::write_profile(folder_ / "step.json", profile);
  const std::string with = "--profile " + (folder_ / "step.json").string();
  const auto placed = plan(with + " --global-batch 8 --stages 2 --replicas 1 --micro-batches 4");
  EXPECT_EQ(placed.at("cut"), nlohmann::json({1, 1}));
  const auto simulated = [&](const std::string& more) {
    Program program{.app = CLI::App{kPurpose, "syncopate"}};
    std::string word = "syncopate";
    char* words[] = {word.data(), nullptr};
    const Command command = add_simulate(program, words);
    const test::TempDir out;
    program.app.parse(fmt::format("simulate {} --placement {} --out {} --json --activation-codec direct {}",
                                  with, (folder_ / "plan.json").string(), (out / "run").string(), more));
    const auto result = nlohmann::json::parse(printed_by(command));
    const auto spec = nlohmann::json::parse(test::read_text(out / "run" / "spec.json"));
    EXPECT_EQ(spec.at("pipeline.stages"), 2);
    EXPECT_EQ(spec.at("pipeline.layout"), placed.at("stages")[0][0] == 0 ? "0/1" : "1/0");
    EXPECT_EQ(spec.at("network.hosts"), "a,b");
    return result.at("ms_per_iteration").get<double>() / 1e3;
  };
  const double played = placed.at("played_out_s");
  EXPECT_NEAR(simulated(""), played, 1e-3 * played);
  EXPECT_GT(simulated("--set comm.slow=1:2"), 1.1 * played);
  EXPECT_THROW(simulated("--workers 4"), ConfigError);
}

}  // namespace
}  // namespace syncopate::cli
