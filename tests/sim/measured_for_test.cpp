#include "syncopate/sim/measured_for.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"

namespace syncopate::sim {
namespace {

Profile some_profile() {
  return {.task = std::string("rte"),
          .model = std::string("bert-mini"),
          .optimizer = std::string("sgd"),
          .precision = std::string("bf16"),
          .device = std::string("cuda:1"),
          .max_length = 96,
          .workers = 2,
          .threads = 1,
          .cores = 4};
}

std::string complaint(const Profile& profile, const Asked& asked) {
  try {
    require_measured_for(profile, asked);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MeasuredFor, NamesBothValuesWhereTheyDiffer) {
  const Profile profile = some_profile();
  const auto both = [&](const Asked& asked, const std::string& measured, const std::string& wanted) {
    const std::string said = complaint(profile, asked);
    EXPECT_NE(said.find(measured), std::string::npos) << said;
    EXPECT_NE(said.find(wanted), std::string::npos) << said;
  };
  both({.task = std::string("sst2")}, "--task rte", "--task sst2");
  both({.model = std::string("bert-tiny")}, "--model bert-mini", "--model bert-tiny");
  both({.precision = std::string("fp32")}, "--precision bf16", "--precision fp32");
  both({.device = std::string("cpu")}, "--device cuda:1", "--device cpu");
  both({.optimizer = std::string("adamw")}, "--optimizer sgd", "--optimizer adamw");
  both({.max_length = 512}, "--max-length 96", "--max-length 512");
  EXPECT_EQ(complaint(profile, {.task = std::string("rte"), .device = std::string("cuda"), .max_length = 96}),
            "");
  EXPECT_EQ(complaint(profile, {}), "");
  EXPECT_EQ(complaint({}, {.task = std::string("sst2"), .model = std::string("bert-tiny")}),
            "");  // not known
}

TEST(MeasuredFor, TakesWhatNobodyAskedFor) {
  spec::RunSpec spec;
  spec.complete();
  const auto taken = take_settings(some_profile(), spec, {});
  EXPECT_EQ(taken, (std::vector<std::string>{"--task rte", "--model bert-mini", "--max-length 96",
                                             "--precision bf16", "--device cuda:1", "--optimizer sgd"}));
  EXPECT_EQ(spec.task.name, "rte");
  EXPECT_EQ(spec.model.name, "bert-mini");
  EXPECT_EQ(spec.max_length(), 96);
  EXPECT_EQ(spec.optim.name, "sgd");
  EXPECT_TRUE(take_settings(some_profile(), spec, {"task.name"}).empty());

  spec::RunSpec given;  // the usual values, but asked for
  given.complete();
  EXPECT_THROW(take_settings(some_profile(), given, {"optim.name"}), ConfigError);
  spec::RunSpec recorded;  // by --config
  recorded.optim.name = std::string("lamb");
  recorded.complete();
  EXPECT_THROW(take_settings(some_profile(), recorded, {}), ConfigError);
}

TEST(MeasuredFor, DividesTheCores) {
  Profile profile = some_profile();
  EXPECT_EQ(core_factor(profile, 1, 0), 1);  // not the CPU's
  profile.device = std::string("cpu");
  EXPECT_NEAR(core_factor(profile, 2, 0), 1, 1e-12);
  EXPECT_NEAR(core_factor(profile, 1, 0), 0.25, 1e-12);
  EXPECT_NEAR(core_factor(profile, 1, 2), 0.5, 1e-12);
  EXPECT_NEAR(core_factor(profile, 8, 0), 2, 1e-12);    // two to a core
  EXPECT_NEAR(core_factor(profile, 2, 8), 0.5, 1e-12);  // no more than there are
  EXPECT_EQ(core_note(profile, 2, 0), "");
  EXPECT_EQ(
      core_note(profile, 1, 0),
      "the profile was measured with 2 workers of 1 thread at once on 4 cores; with 1 worker of 4 threads "
      "its times are taken to be 0.25 times as long");
  profile.cores = 0;
  EXPECT_EQ(core_factor(profile, 1, 0), 1);
  EXPECT_NE(core_note(profile, 1, 0).find("as they are"), std::string::npos);
}

}  // namespace
}  // namespace syncopate::sim
