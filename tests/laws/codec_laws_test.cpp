#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/codec/codec.h"
#include "syncopate/parallel/averagers/coded.h"
#include "syncopate/parallel/averagers/low_rank.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "syncopate/parallel/strategies/overlapped.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/train/checkpoint.h"
#include "tests/laws/rig.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

Rig rig_with(const std::string& codec, int workers, const std::string& strategy = "ddp") {
  Rig rig;
  rig.strategy.name = strategy;
  rig.codec.name = codec;
  rig.codec.warmup = 0.2;
  rig.workers = workers;
  rig.steps = 20;
  rig.optim.lr = 3e-3;
  rig.optim.clip = 0;
  return rig;
}

void expect_equal_traces(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.losses, b.losses);
  for (size_t rank = 0; rank < a.parameters.size(); ++rank) {
    EXPECT_TRUE(at::equal(a.parameters[rank], b.parameters[rank])) << "rank " << rank;
  }
}

double relative_difference(const Trace& a, const Trace& b) {
  return ((a.parameters[0] - b.parameters[0]).norm() / a.parameters[0].norm()).item<double>();
}

using MakeAverager = std::function<std::unique_ptr<parallel::Averager>(comm::Group&)>;

/// By buckets small enough that several are under way.
Rig overlapped(int workers, const MakeAverager& make) {
  Rig rig = rig_with("none", workers);
  rig.make = [make](comm::Group& group) {
    return std::make_unique<parallel::Overlapped>(
        group, make(group), parallel::Overlapped::Options{.bucket_mib = 0.004, .first_bucket_mib = 0.001});
  };
  return rig;
}

MakeAverager coded(const std::string& name, double ratio) {
  return [=](comm::Group& group) {
    return std::make_unique<parallel::Coded>(group, codec::make_codec({.name = name, .ratio = ratio}),
                                             parallel::Coded::Options{});
  };
}

class CodecLaw : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, CodecLaw, testing::Values(2, 3, 4));

TEST_P(CodecLaw, LosslessCodecsMatchAllReduceBitForBit) {
  const Trace reference = train(rig_with("none", GetParam(), "all-reduce"));
  expect_equal_traces(reference, train(overlapped(GetParam(), coded("none", 1))));
  expect_equal_traces(reference, train(overlapped(GetParam(), coded("top-k", 1))));
  expect_equal_traces(reference, train(overlapped(GetParam(), coded("random-k", 1))));
  Rig whole = rig_with("top-k", GetParam(), "all-reduce");
  whole.codec.ratio = 1;
  expect_equal_traces(reference, train(whole));
  const Trace foil = train(overlapped(GetParam(), coded("top-k", 0.5)));
  EXPECT_GT(relative_difference(reference, foil), 1e-4);
}

TEST_P(CodecLaw, FullRankPowerSgdMatchesAllReduce) {
  Rig full = rig_with("power-sgd", GetParam());
  full.codec.rank = 16;
  full.codec.warmup = 0;
  expect_equal_traces(train(rig_with("none", GetParam(), "all-reduce")), train(full));

  // Through P and Q although that is more than the matrix itself.
  const auto forced = [](int64_t rank) {
    return [rank](comm::Group& group) {
      return std::make_unique<parallel::LowRank>(group,
                                                 parallel::LowRank::Options{.rank = rank, .min_rate = 0});
    };
  };
  const auto by_sgd = [](Rig rig) {
    rig.optim.name = "sgd";
    rig.optim.lr = 0.05;
    return train(rig);
  };
  const Trace reference = by_sgd(rig_with("none", GetParam(), "all-reduce"));
  EXPECT_LT(relative_difference(reference, by_sgd(overlapped(GetParam(), forced(16)))), 1e-6);
  EXPECT_GT(relative_difference(reference, by_sgd(overlapped(GetParam(), forced(2)))), 1e-4);
}

TEST_P(CodecLaw, ReplicasStayEqualAndLearn) {
  for (const std::string codec :
       {"fp16", "bf16", "int8", "int4", "top-k", "random-k", "power-sgd", "one-bit"}) {
    for (const std::string strategy : {"ddp", "all-reduce"}) {
      Rig rig = rig_with(codec, GetParam(), strategy);
      rig.steps = 60;
      rig.codec.ratio = 0.4;
      rig.codec.rank = 2;
      rig.optim.clip = 1;
      rig.dropout = 0.1;
      const Trace trace = train(rig);
      for (const at::Tensor& parameters : trace.parameters) {
        EXPECT_TRUE(at::equal(parameters, trace.parameters[0])) << codec;
      }
      double early = 0, late = 0;
      for (size_t i = 0; i < 10; ++i) {
        early += trace.losses[i];
        late += trace.losses[trace.losses.size() - 1 - i];
      }
      EXPECT_LT(late, 0.95 * early) << codec << " " << strategy;
    }
  }
}

TEST_P(CodecLaw, OneBitIsUncompressedDuringWarmUp) {
  const Trace reference = train(rig_with("none", GetParam()));
  Rig late = rig_with("one-bit", GetParam());
  late.codec.warmup = 20;
  expect_equal_traces(reference, train(late));
  late.codec.warmup = 10;
  EXPECT_NE(reference.losses, train(late).losses);
}

TEST(CodecLaws, ResumesBitForBit) {
  for (const std::string codec : {"int8", "top-k", "random-k", "power-sgd", "one-bit", "bf16"}) {
    const TempDir folder;
    Rig straight = rig_with(codec, 3);
    straight.codec.ratio = 0.1;
    straight.codec.rank = 2;
    straight.dropout = 0.1;
    straight.steps = 24;
    const Trace reference = train(straight);
    auto [first, second, before, after, joined] =
        stopped_and_resumed(straight, folder / "checkpoint.safetensors", 11);
    EXPECT_EQ(joined, reference.losses) << codec;
    for (size_t rank = 0; rank < reference.parameters.size(); ++rank) {
      EXPECT_TRUE(at::equal(after.parameters[rank], reference.parameters[rank])) << codec;
    }
    if (codec == "bf16") continue;
    // A checkpoint that forgot what was not sent goes on differently.
    train(first);
    train::Checkpoint forgetful = train::load_checkpoint(first.checkpoint);
    int forgotten = 0;
    for (auto& [name, tensor] : forgetful.tensors) {
      if (name.find("rest") == std::string::npos || name.find("scale") != std::string::npos) continue;
      tensor.zero_();
      ++forgotten;
    }
    EXPECT_GT(forgotten, 0) << codec;
    train::save_checkpoint(first.checkpoint, forgetful);
    EXPECT_NE(train(second).losses, after.losses) << codec;
  }
}

TEST(CodecLaws, SgdWithOneBitLearns) {
  Rig rig = rig_with("one-bit", 2);
  rig.optim.name = "sgd";
  rig.optim.lr = 0.02;
  rig.steps = 80;
  const Trace trace = train(rig);
  EXPECT_TRUE(at::equal(trace.parameters[0], trace.parameters[1]));
  EXPECT_LT(trace.losses.back(), trace.losses.front());
}

TEST(CodecLaws, RejectsCodecsTheStrategyCannotUse) {
  const auto error_of = [](const std::string& strategy, const std::string& codec,
                           const std::function<void(spec::RunSpec&)>& change) -> std::string {
    spec::RunSpec spec;
    spec.comm.workers = strategy == "single" ? 1 : 2;
    spec.strategy.name = strategy;
    spec.codec.name = codec;
    change(spec);
    try {
      spec.validate();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const auto nothing = [](spec::RunSpec&) {};
  for (const std::string strategy : {"ddp", "all-reduce", "local-sgd", "diloco"}) {
    for (const std::string& codec : spec::codec_names()) {
      const std::string error = error_of(strategy, codec, nothing);
      const bool refused = codec == "one-bit" && (strategy == "local-sgd" || strategy == "diloco");
      EXPECT_EQ(error.empty(), !refused) << strategy << " " << codec << ": " << error;
    }
  }
  for (const std::string strategy : {"single", "gather-scatter", "hogwild", "parameter-server"}) {
    EXPECT_EQ(error_of(strategy, "none", nothing), "");
    EXPECT_NE(error_of(strategy, "int8", nothing).find("choose ddp"), std::string::npos) << strategy;
  }
  EXPECT_NE(error_of("ddp", "int9", nothing).find("int8"), std::string::npos);
  EXPECT_NE(error_of("ddp", "one-bit", [](auto& spec) { spec.optim.name = "lamb"; }).find("adamw"),
            std::string::npos);
  for (const double ratio : {0.0, 1.5, std::nan("")}) {
    EXPECT_NE(error_of("ddp", "top-k", [=](auto& spec) { spec.codec.ratio = ratio; }), "");
  }
  EXPECT_NE(error_of("ddp", "power-sgd", [](auto& spec) { spec.codec.rank = 0; }), "");
  EXPECT_NE(error_of("ddp", "power-sgd", [](auto& spec) { spec.codec.warmup = -1; }), "");
  EXPECT_NE(error_of("ddp", "int8", [](auto& spec) { spec.codec.error_feedback = "maybe"; }), "");
}

}  // namespace
}  // namespace syncopate::test
