// What a strategy and a codec are said to put on the wire is what they send.
#include <gtest/gtest.h>

#include "syncopate/spec/strategies.h"
#include "tests/laws/rig.h"

namespace syncopate::test {
namespace {

/// Two workers, so that every rank sends the same with every pattern; tables are exchanged whole.
Rig coded_rig(const std::string& strategy, const std::string& codec) {
  Rig rig;
  rig.workers = 2;
  rig.strategy.name = strategy;
  rig.strategy.sparse_rows = false;
  rig.strategy.whole = true;
  rig.strategy.every = 4;
  rig.strategy.staleness = std::string("0");
  rig.strategy.bucket_mib = rig.strategy.first_bucket_mib = 1000;
  rig.codec.name = codec;
  rig.codec.ratio = 0.1;
  rig.codec.warmup = 1;
  rig.steps = 8;
  return rig;
}

double predicted(const Rig& rig, int64_t parameters) {
  spec::RunSpec spec;
  spec.strategy = rig.strategy;
  spec.codec = rig.codec;
  spec.comm.workers = rig.workers;
  const spec::Traffic traffic = spec::traffic_of(spec, parameters);
  EXPECT_EQ(traffic.every, rig.strategy.name == "local-sgd" || rig.strategy.name == "diloco" ? 4 : 1);
  return traffic.bytes;
}

/// Bytes of rank 0 in the fourth step, in which every strategy exchanges, without the sums of losses.
void expect_sent(const std::string& strategy, const std::string& codec, double tolerance) {
  const Rig rig = coded_rig(strategy, codec);
  const Trace trace = train(rig);
  const int64_t parameters = trace.parameters[0].numel();
  const double sent = trace.bytes.at(3), bytes = predicted(rig, parameters);
  EXPECT_NEAR(sent, bytes, tolerance * bytes + 400) << strategy << " " << codec;
  Rig foil = rig;
  foil.codec.name = codec == "none" ? "fp16" : "none";
  EXPECT_GT(std::abs(sent - predicted(foil, parameters)), 0.2 * sent) << strategy << " " << codec;
}

TEST(Traffic, StrategiesSendWhatIsPredicted) {
  for (const char* strategy :
       {"gather-scatter", "all-reduce", "ddp", "local-sgd", "diloco", "parameter-server"})
    expect_sent(strategy, "none", 0.001);
}

TEST(Traffic, SumsInCommonMemorySendWhatSumsInPlaceSend) {
  for (const char* strategy : {"all-reduce", "ddp"}) {
    Rig rig = coded_rig(strategy, "none");
    const Trace apart = train(rig);
    rig.share = true;
    const Trace together = train(rig);
    EXPECT_TRUE(together.shared);
    EXPECT_EQ(together.bytes, apart.bytes) << strategy;
    rig.workers = 3;
    EXPECT_NE(train(rig).bytes, apart.bytes) << strategy;
  }
}

TEST(Traffic, CodecsSendWhatIsPredicted) {
  for (const char* codec : {"fp16", "bf16", "int8", "int4", "top-k", "random-k"})
    expect_sent("all-reduce", codec, 0.01);
  expect_sent("local-sgd", "int8", 0.01);
}

/// Bytes by what they carry, of all ranks and steps.
void expect_carried(const std::string& strategy, const std::string& codec, comm::Payload most) {
  const Trace trace = train(coded_rig(strategy, codec));
  ASSERT_TRUE(trace.sent.has_value());
  const auto carried = [&](comm::Payload payload) {
    return static_cast<double>(trace.sent->carried[static_cast<size_t>(payload)]);
  };
  double sum = 0;
  for (int p = 0; p < comm::kPayloads; ++p) sum += carried(static_cast<comm::Payload>(p));
  EXPECT_DOUBLE_EQ(sum, trace.bytes_sent) << strategy;
  EXPECT_GT(carried(most), 0.98 * sum) << strategy << " " << codec << ": " << comm::name_of(most);
  EXPECT_GT(carried(comm::Payload::kControl), 0) << strategy << ": losses";
}

TEST(Traffic, EveryByteIsOfAKind) {
  for (const char* codec : {"none", "int8", "power-sgd"})  // also in the second round of an exchange
    expect_carried("all-reduce", codec, comm::Payload::kGradients);
  for (const char* strategy : {"ddp", "gather-scatter", "parameter-server"})
    expect_carried(strategy, "none", comm::Payload::kGradients);
  expect_carried("local-sgd", "none", comm::Payload::kParameters);
  expect_carried("diloco", "int8", comm::Payload::kParameters);
}

TEST(Steps, PartsAddUp) {
  for (const char* strategy : {"single", "ddp", "local-sgd", "parameter-server"}) {
    Rig rig = coded_rig(strategy, "none");
    if (std::string(strategy) == "single") rig.workers = 1;
    const Trace trace = train(rig);
    ASSERT_EQ(trace.records.size(), 8U);
    for (const record::StepRecord& r : trace.records) {
      EXPECT_GT(r.forward_ms, 0);
      EXPECT_GT(r.backward_ms, 0);
      EXPECT_NEAR(r.compute_ms + r.exchange_ms + r.data_ms, r.ms, 1e-6 * r.ms);
      // What is left over is between the parts: nothing of it may be counted twice.
      EXPECT_LE(r.forward_ms + r.backward_ms + r.optimizer_ms, r.compute_ms + 1e-6 * r.ms) << strategy;
    }
  }
}

TEST(Traffic, OneWorkerAndOneMemorySendNothing) {
  Rig rig = coded_rig("hogwild", "none");
  EXPECT_EQ(predicted(rig, 1000), 0);
  rig.strategy.name = "single";
  EXPECT_EQ(predicted(rig, 1000), 0);
}

}  // namespace
}  // namespace syncopate::test
