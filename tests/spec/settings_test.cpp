#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {
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

TEST(Settings, RejectsInvalidLocalStepSettings) {
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
  refused("diloco", {"strategy.fragments=3"}, "8 is not a multiple of 3");
  refused("diloco", {"strategy.fragments=2", "strategy.moments=reset"}, "strategy.fragments=1");
  refused("diloco", {"strategy.mixing=1"}, "strategy.mixing");
  refused("diloco", {"strategy.outer_momentum=1"}, "strategy.outer_momentum");
  refused("diloco", {"strategy.outer_lr=-1"}, "strategy.outer_lr");
  EXPECT_EQ(complaint("ddp", {"strategy.fragments=3", "model.batch_norm=sync"}), "") << "not ddp's";
}

TEST(Settings, RejectsWhatCannotGoTogether) {
  const auto said = [](const std::string& sentence, const std::string& words) {
    EXPECT_NE(sentence.find(words), std::string::npos) << words << ": " << sentence;
  };
  EXPECT_EQ(complaint("hogwild", {}), "");
  EXPECT_EQ(complaint("parameter-server", {"strategy.staleness=0"}), "");
  said(complaint("ddp", {"comm.slow=2:4"}), "names a worker that does not exist");
  EXPECT_EQ(complaint("ddp", {"comm.slow=1:4"}), "");
  said(complaint("ddp", {"codec.name=fp16", "compute.precision=fp16"}), "--codec bf16");
  EXPECT_EQ(complaint("ddp", {"codec.name=bf16", "compute.precision=fp16"}), "");
  EXPECT_EQ(complaint("local-sgd", {"codec.name=fp16", "compute.precision=fp16"}), "") << "parameters travel";
  EXPECT_EQ(complaint("ddp", {"comm.backend=nccl"}),
            "--backend nccl is for workers on GPUs; use --device cuda or --backend auto");
  EXPECT_EQ(complaint("ddp", {"comm.backend=nccl", "compute.device=cuda"}), "");
  EXPECT_EQ(complaint("parameter-server", {"comm.backend=nccl", "compute.device=cuda"}),
            "--backend nccl is for workers on GPUs, and servers have none; use --backend auto");
}

TEST(Settings, WhatChoosesHasAValidationSplit) {
  RunSpec spec;
  EXPECT_FALSE(spec.validation().on()) << "nothing chooses";
  EXPECT_FALSE(spec.keeps_best());
  spec.optim.plateau_factor = 0.5;
  EXPECT_EQ(spec.validation().share, 0.05);
  EXPECT_FALSE(spec.keeps_best());
  spec.optim.plateau_factor = 1;
  spec.train.patience = 3;
  EXPECT_EQ(spec.validation().share, 0.05);
  EXPECT_TRUE(spec.keeps_best());
  spec.train.keep = std::string("last");
  EXPECT_FALSE(spec.keeps_best());
  EXPECT_EQ(spec.validation().share, 0.05) << "patience still looks";
  spec.task.validation = std::string("0.1");
  EXPECT_EQ(spec.validation().share, 0.1);
  spec.task.validation = std::string("dev.tsv");
  EXPECT_EQ(spec.validation().path, "dev.tsv");
  for (const char* chooser : {"train.patience=2", "train.keep=best", "optim.plateau_factor=0.5"}) {
    EXPECT_EQ(complaint("ddp", {chooser}), "");
    EXPECT_NE(complaint("ddp", {chooser, "task.validation=off"}).find("take --validation off away"),
              std::string::npos)
        << chooser;
  }
  EXPECT_NE(complaint("ddp", {"task.validation=1.5"}).find("--validation must be"), std::string::npos);
  EXPECT_NE(complaint("ddp", {"train.keep=worst"}).find("--keep must be"), std::string::npos);
}

TEST(Settings, RejectsOptimizersNoRunCouldUse) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"optim.beta1=2", "optim.beta1"},          {"optim.beta2=1", "optim.beta2"},
      {"optim.momentum=-1", "optim.momentum"},   {"optim.eps=0", "optim.eps"},
      {"optim.trust=0", "optim.trust"},          {"optim.weight_decay=-1", "optim.weight_decay"},
      {"optim.nesterov=true", "optim.nesterov"}, {"optim.schedule=linaer", "\"linear\""},
      {"optim.scaling=cubic", "cubic"}};
  for (const char* strategy : {"ddp", "parameter-server"}) {
    EXPECT_EQ(complaint(strategy, {}), "");
    for (const auto& [setting, words] : bad) {
      const std::string said = complaint(strategy, {setting});
      EXPECT_NE(said.find(words), std::string::npos) << setting << ": " << said;
    }
  }
  EXPECT_EQ(complaint("ddp", {"optim.name=sgd", "optim.nesterov=true"}), "");
  EXPECT_NE(complaint("ddp", {"optim.name=sgd", "optim.nesterov=true", "optim.momentum=0"}), "");
}

TEST(Settings, AutoIsAValueAndZeroIsNot) {
  RunSpec spec;
  const Fields fields = spec.fields();
  for (const char* name : {"train.batch_size", "train.global_batch", "train.steps", "train.epochs",
                           "task.max_length", "compute.threads", "train.eval_batch"}) {
    fields.set(name, "12");
    fields.set(name, "auto");
    EXPECT_EQ(Fields::text_of(fields.find(name)), "auto") << name;
    EXPECT_THROW(fields.set(name, "0"), ConfigError) << name;
  }
  try {
    fields.set("train.batch_size", "0");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--batch-size must be a whole number above 0 or auto, got \"0\"");
  }
  fields.set("optim.clip", "off");
  EXPECT_EQ(spec.optim.clip, 0);
  fields.set("optim.clip", "0");  // a number like another, and people write it
  EXPECT_EQ(Fields::text_of(fields.find("clip")), "off");
}

}  // namespace
}  // namespace syncopate::spec
