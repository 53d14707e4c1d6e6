#include "syncopate/spec/effect.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"

namespace syncopate::spec {
namespace {

/// What somebody who gives these is told; empty: nothing.
std::string complaint(const std::vector<std::string>& assignments) {
  RunSpec spec;
  const Fields fields = spec.fields();
  std::vector<std::string> given;
  for (const std::string& assignment : assignments) given.push_back(fields.set_assignment(assignment).name);
  spec.complete();
  try {
    require_effect(spec, given);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Effect, SettingsOfAnotherStrategyAreRefusedWithTheirOwner) {
  EXPECT_EQ(complaint({"strategy=ddp", "strategy.every=4"}),
            "strategy.every has no effect with ddp: it is a setting of local-sgd, diloco; leave it out");
  EXPECT_EQ(complaint({"strategy=local-sgd", "strategy.every=4"}), "");
  EXPECT_EQ(
      complaint({"strategy=hogwild", "strategy.staleness=3"}),
      "strategy.staleness has no effect with hogwild: it is a setting of parameter-server; leave it out");
  EXPECT_NE(complaint({"strategy=parameter-server", "strategy.state=shared"}).find("a setting of hogwild"),
            std::string::npos);
  EXPECT_NE(complaint({"strategy=diloco", "strategy.overlap_average=true"}).find("a setting of local-sgd"),
            std::string::npos);
  EXPECT_NE(complaint({"strategy=local-sgd", "strategy.fragments=2"}).find("a setting of diloco"),
            std::string::npos);
}

TEST(Effect, AnUpdateIsSharedByWorkersThatShareMemory) {
  const std::string share = "strategy.share_update=true", ddp = "strategy=ddp";
  EXPECT_EQ(complaint({ddp, share, "workers=2"}), "");
  EXPECT_EQ(complaint({ddp, share, "workers=2", "comm.backend=shm"}), "");
  EXPECT_EQ(complaint({"strategy=data-parallel", share, "workers=2"}), "");
  const std::pair<std::string, std::string> unmet[] = {{"comm.backend=gloo", "--backend auto or shm"},
                                                       {"comm.backend=shm+gloo", "--backend auto or shm"},
                                                       {"codec=int8", "--codec none"},
                                                       {"optimizer=lamb", "--optimizer adamw or sgd"},
                                                       {"device=cuda", "--device cpu"},
                                                       {"workers=1", "two or more workers"}};
  for (const auto& [setting, needed] : unmet) {
    const std::string told = complaint({ddp, share, "workers=2", setting});
    EXPECT_NE(told.find("strategy.share_update has no effect"), std::string::npos) << setting << ": " << told;
    EXPECT_NE(told.find(needed), std::string::npos) << setting << ": " << told;
  }
  EXPECT_NE(complaint({"strategy=local-sgd", share, "workers=2"}).find("a setting of all-reduce, ddp"),
            std::string::npos);
}

TEST(Effect, TheDefaultGivenCountsAsGiven) {
  RunSpec spec;
  EXPECT_EQ(spec.strategy.every, 8);
  EXPECT_NE(complaint({"strategy=ddp", "strategy.every=8"}), "");
  EXPECT_EQ(complaint({"strategy=ddp"}), "") << "nobody gave it";
}

TEST(Effect, CodecsOptimizersAndSchedulesOwnTheirSettings) {
  EXPECT_EQ(complaint({"codec.rank=2"}),
            "codec.rank has no effect with --codec none: it is a setting of power-sgd; leave it out");
  EXPECT_EQ(complaint({"codec=power-sgd", "codec.rank=2"}), "");
  EXPECT_EQ(complaint({"optimizer=sgd", "optim.beta1=0.8"}),
            "optim.beta1 has no effect with sgd: it is a setting of adamw, lamb; leave it out");
  EXPECT_EQ(complaint({"optimizer=lamb", "optim.beta1=0.8"}), "");
  EXPECT_EQ(complaint({"optim.milestones=0.5"}),
            "optim.milestones has no effect with --schedule linear: it is a setting of step; leave it out");
  EXPECT_EQ(complaint({"schedule=step", "optim.milestones=0.5"}), "");
  EXPECT_NE(complaint({"base_batch=64"}).find("--base-batch has no effect with --lr-scaling none"),
            std::string::npos);
  EXPECT_EQ(complaint({"lr_scaling=sqrt", "base_batch=64"}), "");
}

TEST(Effect, ARecordedSpecKeepsWhatTheRunStillHeeds) {
  RunSpec spec;
  spec.optim.name = std::string("adamw");
  spec.optim.nesterov = true;  // as an sgd run recorded it
  spec.optim.lr = 0.25;
  spec.strategy.every = 16;  // as local-sgd did
  drop_unheeded(spec, {});
  EXPECT_FALSE(spec.optim.nesterov);
  EXPECT_EQ(spec.strategy.every, RunSpec().strategy.every);
  EXPECT_EQ(spec.optim.lr, 0.25) << "every optimizer heeds it";
  spec.strategy.every = 16;
  drop_unheeded(spec, {"strategy.every"});
  EXPECT_EQ(spec.strategy.every, 16) << "what somebody gave is refused, not dropped";
}

TEST(Effect, TasksOwnTheirSettings) {
  EXPECT_EQ(complaint({"task=supersense", "text=words"}),
            "--text has no effect with the task supersense: it is a setting of csv, mlm, clm; leave it out");
  for (const char* task : {"csv", "mlm", "clm"}) {
    EXPECT_EQ(complaint({std::string("task=") + task, "text=words", "data=x.csv"}), "") << task;
  }
  EXPECT_NE(complaint({"task=mlm", "encoding=latin-1"}).find("it needs --data"), std::string::npos);
  EXPECT_NE(complaint({"task=mlm", "label=words"}).find("a setting of csv"), std::string::npos);
  EXPECT_NE(complaint({"task=sst2", "task.whole_words=true"}).find("a setting of mlm"), std::string::npos);
  EXPECT_NE(complaint({"task=rte", "task.augment=false"}).find("a setting of cifar10, idx"),
            std::string::npos);
  EXPECT_NE(complaint({"task=cifar10", "dropout=0.2"}).find("--dropout has no effect"), std::string::npos);
  EXPECT_NE(complaint({"task=clm", "label_smoothing=0.1"}), "");
  EXPECT_EQ(complaint({"task=squad", "task.stride=64", "label_smoothing=0.1"}), "");
  EXPECT_EQ(complaint({"task=idx", "model.batch_norm=sync", "task.augment=true"}), "");
}

TEST(Effect, SettingsThatNeedAnotherSayWhich) {
  EXPECT_EQ(
      complaint({"strategy=local-sgd", "strategy.bucket_mib=3"}),
      "strategy.bucket_mib has no effect here: it needs strategy.post_local_start above 0; leave it out");
  EXPECT_EQ(complaint({"strategy=local-sgd", "strategy.bucket_mib=3", "strategy.post_local_start=5"}), "");
  EXPECT_NE(complaint({"strategy=parameter-server", "strategy.staleness=0", "strategy.staleness_lr=true"}),
            "");
  EXPECT_EQ(complaint({"strategy=parameter-server", "strategy.staleness=1", "strategy.staleness_lr=true"}),
            "");
  EXPECT_NE(complaint({"optim.plateau_patience=3"}).find("optim.plateau_factor below 1"), std::string::npos);
  EXPECT_EQ(complaint({"optim.plateau_patience=3", "optim.plateau_factor=0.5"}), "");
  EXPECT_NE(complaint({"codec=one-bit", "optimizer=sgd", "codec.warmup=3"}).find("--optimizer adamw"),
            std::string::npos);
  EXPECT_EQ(complaint({"codec=one-bit", "codec.warmup=3"}), "");
  EXPECT_NE(complaint({"train.balance_every=3"}).find("--balance"), std::string::npos);
  EXPECT_EQ(complaint({"train.arrange=false"}), "");
  EXPECT_NE(complaint({"task=idx", "train.arrange=false"}).find("squad"), std::string::npos);
  EXPECT_NE(complaint({"train.noise_scale=true"}).find("two or more workers"), std::string::npos);
  EXPECT_NE(complaint({"strategy=local-sgd", "workers=2", "train.noise_scale=true"}), "");
  EXPECT_NE(
      complaint({"strategy=ddp", "workers=2", "codec=int8", "train.noise_scale=true"}).find("--codec none"),
      std::string::npos);
  EXPECT_EQ(complaint({"strategy=ddp", "workers=2", "train.noise_scale=true"}), "");
  EXPECT_NE(complaint({"strategy=hogwild", "workers=2", "train.worker_evals=true"}), "");
  EXPECT_EQ(complaint({"strategy=diloco", "workers=2", "train.worker_evals=true"}), "");
  EXPECT_NE(complaint({"model=./folder", "model.vocab_size=100"}).find("a model folder's"),
            std::string::npos);
  EXPECT_EQ(complaint({"model=bert-mini", "model.vocab_size=100"}), "");
}

TEST(Effect, FlagsOfACommandBelongToTasksToo) {
  const auto said = [](const std::string& task, const std::vector<std::string>& flags) -> std::string {
    try {
      require_effect_on_task(task, flags);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("sst2", {"model", "data", "top-k"}),
            "--top-k has no effect with the task sst2: it is for clm; leave it out");
  EXPECT_EQ(said("clm", {"top-k", "seed", "text", "json"}), "");
  EXPECT_EQ(said("rte", {"stride"}),
            "--stride has no effect with the task rte: it is for squad, definition-qa; leave it out");
  EXPECT_EQ(said("mlm", {"mask-rate", "whole-words", "documents", "best"}), "");
  EXPECT_EQ(said("csv", {"text", "text-pair", "label", "prompt-pair", "max-length"}), "");
  EXPECT_NE(said("idx", {"max-length"}), "");
}

TEST(Effect, UnknownNamesAreLeftToTheirOwnComplaint) {
  EXPECT_NE(complaint({"strategy=dpd", "strategy.every=3"}).find("did you mean \"ddp\"?"), std::string::npos);
}

TEST(Effect, RunsTooShortToAverageAreTold) {
  RunSpec spec;
  spec.comm.workers = 2;
  spec.strategy.name = "local-sgd";
  spec.strategy.every = 50;
  EXPECT_NE(rare_averages(spec, 49).find("strategy.every=50 is more than the 49 steps"), std::string::npos);
  EXPECT_EQ(rare_averages(spec, 50), "");
  spec.strategy.post_local_start = 10;
  EXPECT_NE(rare_averages(spec, 50).find("the 40 local steps"), std::string::npos);
  EXPECT_NE(rare_averages(spec, 10).find("workers make every step together"), std::string::npos);
  spec.strategy.name = "ddp";
  EXPECT_EQ(rare_averages(spec, 3), "");
}

}  // namespace
}  // namespace syncopate::spec
