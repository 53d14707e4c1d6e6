#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/run/spec.h"

namespace syncopate::run {
namespace {

/// What a run with these settings is told.
std::string complaint(const std::string& strategy, const std::vector<std::string>& assignments) {
  RunSpec spec;
  spec.strategy.name = strategy;
  spec.comm.workers = 2;
  const Fields fields = spec.fields();
  for (const std::string& assignment : assignments) fields.set_assignment(assignment);
  spec.complete();
  try {
    spec.validate();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, OfLocalStepsThatCannotBeAreRefusedBeforeARunBegins) {
  const auto refused = [](const std::string& strategy, const std::vector<std::string>& assignments,
                          const std::string& words) {
    const std::string sentence = complaint(strategy, assignments);
    EXPECT_NE(sentence.find(words), std::string::npos) << words << ": " << sentence;
  };
  for (const char* strategy : {"local-sgd", "diloco"}) {
    EXPECT_EQ(complaint(strategy, {}), "");
    refused(strategy, {"strategy.every=0"}, "strategy.every must be 1 or more, got 0");
    refused(strategy, {"strategy.delay=8"}, "strategy.delay");
    refused(strategy, {"strategy.moments=forget"}, "strategy.moments");
    refused(strategy, {"model.batch_norm=sync"}, "model.batch_norm=local");
    refused(strategy, {"model.batch_norm=broadcast"}, "model.batch_norm=local");
  }
  refused("local-sgd", {"strategy.post_local_start=-1"}, "strategy.post_local_start");
  refused("local-sgd", {"strategy.every=1", "strategy.overlap_average=true"}, "2 or more");
  refused("diloco", {"strategy.fragments=3"}, "8 is not one of 3");
  refused("diloco", {"strategy.fragments=2", "strategy.moments=reset"}, "strategy.fragments=1");
  refused("diloco", {"strategy.mixing=1"}, "strategy.mixing");
  refused("diloco", {"strategy.outer_momentum=1"}, "strategy.outer_momentum");
  refused("diloco", {"strategy.outer_lr=-1"}, "strategy.outer_lr");
  EXPECT_EQ(complaint("ddp", {"strategy.fragments=3", "model.batch_norm=sync"}), "") << "not ddp's";
}

}  // namespace
}  // namespace syncopate::run
