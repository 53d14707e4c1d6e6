#include "syncopate/sim/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/sim/engine.h"
#include "syncopate/sim/record_run.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {
namespace {

/// As many hosts with one device each, all links alike.
network::Topology ring(int hosts, double latency_ms, double gbit) {
  std::vector<network::Host> all;
  for (int host = 0; host < hosts; ++host)
    all.push_back({.name = std::to_string(host), .region = std::string("r"), .devices = 1});
  const network::Link link{.latency_ms = latency_ms, .gbit = gbit};
  return network::Topology(
      "test", all, std::vector<network::Link>(static_cast<size_t>(hosts) * static_cast<size_t>(hosts), link));
}

std::vector<int> one_each(int ranks) {
  std::vector<int> seats(static_cast<size_t>(ranks));
  std::iota(seats.begin(), seats.end(), 0);
  return seats;
}

/// Seconds until the last rank has the sum.
double all_reduce_seconds(int ranks, double bytes, double latency_ms, double gbit, double* sent = nullptr) {
  const network::Topology topology = ring(ranks, latency_ms, gbit);
  Engine engine(topology, one_each(ranks), ranks, {});
  const int sum = engine.all_reduce(bytes, 4);
  for (int rank = 0; rank < ranks; ++rank) {
    engine.script(engine.actor(rank)) = {{.kind = Action::Kind::kStart, .operation = sum},
                                         {.kind = Action::Kind::kWait, .operation = sum},
                                         {.kind = Action::Kind::kMark}};
  }
  engine.play();
  double last = 0, all = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    last = std::max(last, engine.marks(rank).back().at);
    all += engine.marks(rank).back().sent;
  }
  if (sent != nullptr) *sent = all;
  return last;
}

double bytes_per_second(double gbit) { return gbit * 1e9 / 8 * network::kPayloadShare; }

Profile small_profile() {
  Profile profile;
  profile.workers = 2;
  profile.times = {{.batch = 8, .forward_s = 0.01, .backward_s = 0.02, .update_s = 0.002},
                   {.batch = 16, .forward_s = 0.018, .backward_s = 0.038, .update_s = 0.002}};
  profile.parameters = {{.name = "head", .shape = {256, 256}},
                        {.name = "bias", .shape = {256}},
                        {.name = "body", .shape = {1024, 512}}};
  return profile;
}

spec::RunSpec run(const std::string& strategy, int64_t workers, const std::string& codec = "none") {
  spec::RunSpec spec;
  spec.strategy.name = strategy;
  spec.codec.name = codec;
  spec.comm.workers = workers;
  spec.train.global_batch = 8 * workers;
  spec.complete();
  return spec;
}

Scene scene(int64_t ranks, double latency_ms, double gbit) {
  return {.topology = ring(static_cast<int>(ranks), latency_ms, gbit),
          .seats = one_each(static_cast<int>(ranks)),
          .profile = small_profile()};
}

// Gloo sends a segment once the receiver has said that it is ready: a round is a round trip.
TEST(Engine, AllReduceOfTwoTakesTwoRoundTripsAndTheBytesOnce) {
  const double bytes = 1 << 20, rate = bytes_per_second(0.1), preambles = 4 * 96 + 2 * 48;
  EXPECT_NEAR(all_reduce_seconds(2, bytes, 20, 0.1), 4 * 0.020 + (bytes + preambles) / rate, 1e-9);
  EXPECT_GT(all_reduce_seconds(2, bytes, 20, 0.1), 2 * 0.020 + (bytes + preambles) / rate + 0.01);  // foil
}

// Acknowledgements wait behind what goes the other way.
TEST(Engine, LongTransfersBothWaysDoNotFillALongLink) {
  const double bytes = 40e6, alone = bytes / bytes_per_second(0.1);
  EXPECT_GT(all_reduce_seconds(2, bytes, 150, 0.1), 1.3 * alone + 4 * 0.150);
  // Foils: a near link, a short transfer, and a ring, whose links are used one way.
  EXPECT_LT(all_reduce_seconds(2, bytes, 5, 0.1), 1.1 * alone);
  EXPECT_LT(all_reduce_seconds(2, 1e6, 150, 0.1), 1.05e6 / bytes_per_second(0.1) + 4 * 0.150);
  EXPECT_LT(all_reduce_seconds(4, bytes, 20, 0.1), 1.05 * 1.5 * alone + 12 * 0.020);
}

TEST(Engine, RingOfEqualLinksIsTheClosedForm) {
  for (const int ranks : {4, 8, 16}) {
    const double bytes = 4e6, rate = bytes_per_second(1), segment = bytes / ranks / 2 / rate;
    const double rounds = 2 * (ranks - 1);
    // Latency decides: each segment of a chunk waits for its round trip.
    EXPECT_NEAR(all_reduce_seconds(ranks, bytes, 50, 1) / (rounds * (0.1 + segment)), 1, 0.03) << ranks;
    // Bandwidth decides.
    EXPECT_NEAR(all_reduce_seconds(ranks, bytes, 0, 1) / (rounds * 2 * segment), 1, 0.03) << ranks;
  }
}

TEST(Engine, ManyRanksInRoundsAgreeWithMessages) {
  const double played = all_reduce_seconds(64, 8e6, 5, 1), rounds = all_reduce_seconds(65, 8e6, 5, 1);
  EXPECT_NEAR(rounds / played, 1, 0.05);
}

TEST(Engine, BytesAreThoseOfTheMeter) {
  double sent = 0;
  for (const double bytes : {4e5, 25.0 * (1 << 20)}) {  // two segments a rank, and many
    for (const int ranks : {2, 3, 5, 8}) {
      all_reduce_seconds(ranks, bytes, 1, 1, &sent);
      EXPECT_NEAR(sent, 2 * bytes * (ranks - 1), 1) << bytes << " on " << ranks;
    }
  }
}

TEST(Engine, GatherSharesNothingButItsLinks) {
  const network::Topology topology = ring(3, 10, 0.1);
  Engine engine(topology, one_each(3), 3, {});
  const int gathered = engine.gather(1e6, 0);
  for (int rank = 0; rank < 3; ++rank) {
    engine.script(engine.actor(rank)) = {{.kind = Action::Kind::kStart, .operation = gathered},
                                         {.kind = Action::Kind::kWait, .operation = gathered},
                                         {.kind = Action::Kind::kMark}};
  }
  engine.play();
  EXPECT_NEAR(engine.marks(0).back().at, 0.020 + (1e6 + 96) / bytes_per_second(0.1), 1e-4);
}

/// The same with memory within hosts.
network::Topology sharing(int hosts, double latency_ms, double gbit) {
  const network::Topology apart = ring(hosts, latency_ms, gbit);
  std::vector<network::Link> links(static_cast<size_t>(hosts) * static_cast<size_t>(hosts), apart.link(0, 1));
  for (int host = 0; host < hosts; ++host)
    links[static_cast<size_t>(host) * static_cast<size_t>(hosts + 1)] = network::kMemory;
  return network::Topology("sharing", apart.hosts(), links);
}

/// What a collective of ranks that share hosts takes, and what it puts on the link from host 1 to host 0.
struct Crossing {
  double seconds = 0, bytes = 0, sent = 0;
};

Crossing cross(const std::vector<int>& seats, bool in_levels, const LocalCosts& costs,
               const std::function<int(Engine&)>& make) {
  const network::Topology topology = sharing(3, 5, 0.1);
  const auto ranks = static_cast<int>(seats.size());
  Engine engine(topology, seats, ranks, costs);
  if (in_levels) engine.use_levels();
  const int operation = make(engine);
  for (int rank = 0; rank < ranks; ++rank) {
    engine.script(engine.actor(rank)) = {{.kind = Action::Kind::kStart, .operation = operation},
                                         {.kind = Action::Kind::kWait, .operation = operation},
                                         {.kind = Action::Kind::kMark}};
  }
  engine.play();
  Crossing result;
  for (int rank = 0; rank < ranks; ++rank) {
    result.seconds = std::max(result.seconds, engine.marks(rank).back().at);
    result.sent += engine.marks(rank).back().sent;
  }
  for (const Engine::WireUse& use : engine.wires())
    result.bytes += use.from == 1 && use.to == 0 ? use.bytes : 0;
  return result;
}

Crossing sum_across(const std::vector<int>& seats, double bytes, bool in_levels,
                    const LocalCosts& costs = {}) {
  return cross(seats, in_levels, costs, [&](Engine& engine) { return engine.all_reduce(bytes, 4); });
}

TEST(Engine, RanksOfOneHostCrossALinkAsOne) {
  const double bytes = 4e6;
  const Crossing alone = sum_across({0, 1}, bytes, true);
  for (const std::vector<int>& seats : {std::vector{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 1}}) {
    const Crossing levels = sum_across(seats, bytes, true), ring = sum_across(seats, bytes, false);
    EXPECT_NEAR(levels.seconds, alone.seconds, 0.01 * alone.seconds) << "memory costs little here";
    EXPECT_NEAR(levels.bytes, alone.bytes, 1);
    EXPECT_NEAR(levels.sent, 2 * bytes * 3, 1) << "counted as over Gloo";
    EXPECT_NEAR(ring.sent, 2 * bytes * 3, 1);
    EXPECT_GT(ring.bytes, 1.4 * levels.bytes);  // foil
    EXPECT_GT(ring.seconds, 1.4 * levels.seconds);
  }
  // One rank a host: nothing changes.
  EXPECT_EQ(sum_across({0, 1, 2}, bytes, true).seconds, sum_across({0, 1, 2}, bytes, false).seconds);
}

TEST(Engine, MemoryIsOnTheWayUpAndDown) {
  const LocalCosts memory{.reduce_gbyte = 0.02, .copy_gbyte = 0.04};
  const auto costs = [&](double bytes) {
    return sum_across({0, 0, 1, 1}, bytes, true, memory).seconds -
           sum_across({0, 1}, bytes, true, memory).seconds;
  };
  // Summed slice by slice, with a copy there and back; then copied to the others.
  const double small = 4e6, up = small / 0.04e9 + small / 0.02e9, down = small / 0.04e9;
  EXPECT_NEAR(costs(small), up + down, 1e-6);
  // A large one goes in pieces, of which some are in memory while others are on the link.
  const double large = 40e6;
  EXPECT_LT(costs(large), 0.6 * large / small * (up + down));
  EXPECT_GT(costs(large), up + down);
}

TEST(Engine, PartsOfAHostTravelTogether) {
  for (const bool gathers : {true, false}) {
    // Two and two, and one beside three, of which the root is not the first.
    const std::vector<int> seats{0, 0, 1, 1},
        uneven = gathers ? std::vector{1, 0, 0, 0} : std::vector{0, 1, 1, 1};
    const auto make = [&](Engine& engine) {
      return gathers ? engine.gather(1e6, 1) : engine.scatter(1e6, 3);
    };
    const Crossing levels = cross(seats, true, {}, make), plain = cross(seats, false, {}, make);
    EXPECT_NEAR(levels.bytes, 2e6, 1e3) << "the parts of two ranks";
    EXPECT_NEAR(levels.bytes, plain.bytes, 1e3);
    EXPECT_EQ(levels.sent, 3e6);
    EXPECT_EQ(plain.sent, 3e6);
    EXPECT_NEAR(levels.seconds, plain.seconds, 0.02 * plain.seconds);
    EXPECT_NEAR(cross(uneven, true, {}, make).bytes, 1e6, 1e3) << "the part of one";
  }
}

TEST(Predict, OneWorkerIsItsCompute) {
  const Prediction alone = predict(run("single", 1), scene(1, 0, 1));
  EXPECT_NEAR(alone.ms, 32, 1e-6);
  EXPECT_EQ(alone.exchange_ms, 0);
  EXPECT_EQ(alone.bytes_per_step, 0);
  EXPECT_NEAR(alone.examples_per_s, 8 / 0.032, 1e-6);
}

TEST(Predict, BytesAgreeWithTheTableOfTraffic) {
  // By tensors, all of them in dense arrays.
  for (const char* strategy : {"all-reduce", "ddp", "gather-scatter", "local-sgd"}) {
    for (const int64_t workers : {2, 4}) {
      const spec::RunSpec spec = run(strategy, workers);
      const Prediction step = predict(spec, scene(workers, 1, 1));
      const spec::Traffic traffic = spec::traffic_of(spec, small_profile().elements());
      const double every = static_cast<double>(traffic.every);
      EXPECT_NEAR(step.bytes_per_step / (traffic.bytes / every), 1, 0.01) << strategy << workers;
    }
  }
  // Also where workers share hosts.
  Scene shared = scene(4, 1, 1);
  shared.topology = sharing(4, 1, 1);
  shared.seats = {0, 0, 1, 1};
  for (const char* strategy : {"all-reduce", "ddp", "gather-scatter", "local-sgd"})
    EXPECT_NEAR(predict(run(strategy, 4), shared).bytes_per_step,
                predict(run(strategy, 4), scene(4, 1, 1)).bytes_per_step, 1)
        << strategy;
  const spec::RunSpec int8 = run("ddp", 2, "int8");
  const double packed = spec::traffic_of(int8, small_profile().elements()).bytes;
  EXPECT_NEAR(predict(int8, scene(2, 1, 1)).bytes_per_step / packed, 1, 0.01);
}

TEST(Predict, TheBackendDecidesWhoCrossesALink) {
  Scene shared = scene(4, 1, 0.1);
  shared.topology = sharing(4, 1, 0.1);
  shared.seats = {0, 0, 1, 1};
  spec::RunSpec gloo = run("ddp", 4);
  gloo.comm.backend = "gloo";
  const auto carried = [](const Prediction& step) {
    double most = 0;
    for (const LinkUse& link : step.links) most = std::max(most, link.bytes);
    return most;
  };
  const Prediction plain = predict(gloo, shared), levels = predict(run("ddp", 4), shared);
  EXPECT_NEAR(carried(plain) / carried(levels), 1.5, 0.05);
  EXPECT_LT(levels.ms, plain.ms);
}

TEST(Predict, HidesBucketsBehindTheBackwardPass) {
  const Scene fast = scene(2, 0, 10);
  const Prediction ddp = predict(run("ddp", 2), fast), after = predict(run("all-reduce", 2), fast);
  EXPECT_GT(ddp.hidden_ms, 0);
  EXPECT_LE(ddp.ms, after.ms);
  // Behind 20 ms of backward pass 2.4 MB at 10 Gbit/s all but vanish; at 0.1 Gbit/s they do not.
  EXPECT_LT(ddp.ms, 36);
  EXPECT_GT(predict(run("ddp", 2), scene(2, 0, 0.1)).ms, 150);
}

TEST(Predict, LocalStepsAreAMeanOverTheirPeriod) {
  spec::RunSpec spec = run("local-sgd", 2);
  spec.strategy.every = 4;
  const Prediction local = predict(spec, scene(2, 10, 0.1));
  ASSERT_EQ(local.step_ms.size(), 4u);
  EXPECT_NEAR(local.step_ms[0], 32, 0.1);
  EXPECT_GT(local.step_ms[3], 200);
  EXPECT_NEAR(local.ms, std::accumulate(local.step_ms.begin(), local.step_ms.end(), 0.0) / 4, 1e-6);
  spec.strategy.every = 8;
  EXPECT_LT(predict(spec, scene(2, 10, 0.1)).ms, local.ms);
}

TEST(Predict, TheSlowestWorkerSetsThePace) {
  spec::RunSpec spec = run("all-reduce", 4);
  const double even = predict(spec, scene(4, 0, 10)).ms;
  spec.comm.slow = "2:3";
  EXPECT_NEAR(predict(spec, scene(4, 0, 10)).ms - even, 60, 1);  // 30 ms of passes take 90
  spec = run("parameter-server", 4);
  const double free = predict(spec, scene(5, 0, 10)).ms;
  spec.comm.slow = "2:3";
  // Nobody waits for it: three make an update each while it makes a third of one.
  EXPECT_NEAR(predict(spec, scene(5, 0, 10)).ms / free, 4 / (3 + 1 / 3.0), 0.03);
}

// SlowEngine sleeps behind the backward pass: buckets are on their way by then.
TEST(Predict, ASlowWorkerSendsItsBucketsInTime) {
  spec::RunSpec spec = run("ddp", 2);
  spec.strategy.bucket_mib = spec.strategy.first_bucket_mib = 0.1;
  const Scene narrow = scene(2, 0, 0.5);  // 2.4 MB take 39 ms, more than the backward pass
  const Prediction even = predict(spec, narrow);
  spec.comm.slow = std::string("1:3");
  const Prediction slow = predict(spec, narrow);
  // 60 ms of sleep hide what was waited for.
  EXPECT_NEAR(slow.ms, 32 + 60, 2);
  EXPECT_LT(slow.ms, even.ms + 60 - 10);  // foil: had the buckets waited as well
}

TEST(Predict, FreeWorkersPartsAreTheirWholeStep) {
  spec::RunSpec spec = run("parameter-server", 4);
  spec.comm.slow = std::string("2:3");
  Scene here = scene(5, 5, 0.2);
  for (BatchTime& time : here.profile.times) time.data_s = 0.003;
  const Prediction step = predict(spec, here);
  EXPECT_NEAR(step.compute_ms + step.exchange_ms + step.data_ms, step.ms, 1e-6 * step.ms);
  EXPECT_NEAR(step.data_ms, 3, 1e-6);
  EXPECT_EQ(step.update_ms, 0);  // the server makes it
  EXPECT_NEAR(std::accumulate(step.step_ms.begin(), step.step_ms.end(), 0.0),
              step.ms * static_cast<double>(step.step_ms.size()), 1e-6 * step.ms);
  // Three workers of 30 ms and one of 90, by how often each makes an update.
  EXPECT_GT(step.forward_ms + step.backward_ms, 31);
  EXPECT_LT(step.forward_ms + step.backward_ms, 0.25 * (3 * 30 + 90));
  const SimulatedRun played = simulated_run(spec, here, step, 80);
  EXPECT_NEAR(static_cast<double>(played.result.examples) / played.result.train_seconds,
              played.result.examples_per_s, 1e-6 * played.result.examples_per_s);
  EXPECT_NEAR(played.result.data_ms, 3, 1e-6);
  EXPECT_EQ(played.result.optimizer_ms, 0);
}

TEST(Predict, RecordsTheSlowStepsOfAPeriodInTheTail) {
  spec::RunSpec spec = run("local-sgd", 2);
  spec.strategy.every = 8;
  const Scene here = scene(2, 10, 0.1);
  const Prediction step = predict(spec, here);
  const SimulatedRun played = simulated_run(spec, here, step, 80);
  EXPECT_NEAR(played.result.ms_p50, 32, 0.1);
  EXPECT_NEAR(played.result.ms_p95, step.step_ms.back(), 1e-6);  // every eighth step
}

TEST(Predict, FragmentsOfThinMatricesSendWhatTheWholeDoes) {
  spec::RunSpec spec = run("diloco", 2, "power-sgd");
  spec.strategy.every = 4;
  Scene here = scene(2, 1, 1);
  for (int i = 0; i < 4; ++i)
    here.profile.parameters.push_back({.name = std::to_string(i), .shape = {512, 256}});
  const double whole = predict(spec, here).bytes_per_step;
  spec.strategy.fragments = 4;
  EXPECT_NEAR(predict(spec, here).bytes_per_step / whole, 1, 0.01);
  spec.codec.rank = 8;  // foil
  EXPECT_GT(predict(spec, here).bytes_per_step, 1.5 * whole);
  spec.strategy.every = spec.strategy.fragments = 8;  // of 7 tensors
  EXPECT_THROW(predict(spec, here), ConfigError);
}

TEST(Predict, WorkersAndThreadsOfTheProfileCount) {
  Scene here = scene(1, 0, 1);
  here.profile.cores = 2;  // two workers of a thread each
  const auto alone = [&](int64_t threads) {
    spec::RunSpec spec = run("single", 1);
    spec.compute.threads = threads;
    return predict(spec, here).ms;
  };
  EXPECT_NEAR(alone(0), 16, 1e-6);  // a worker by itself has both cores
  EXPECT_NEAR(alone(1), 32, 1e-6);
  here.one_machine = true;
  EXPECT_NEAR(alone(0), 16, 1e-6);
  EXPECT_NEAR(alone(1), 32, 1e-6);
  here.profile.cores = 0;  // not known
  EXPECT_NEAR(alone(0), 32, 1e-6);
}

TEST(Predict, LinksOfManyHostsAreFoundAtOnce) {
  const int64_t hosts = 512;
  const spec::RunSpec spec = run("all-reduce", hosts, "int8");
  const Scene here = scene(hosts, 5, 1);
  const auto before = std::chrono::steady_clock::now();
  const Prediction step = predict(spec, here);
  const record::NetworkRecord network = simulated_run(spec, here, step, 1).result.network.value();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(step.links.size(), 512u * 511u);
  EXPECT_EQ(network.links.size(), 2000u);
  EXPECT_EQ(network.how, "simulated; the 2000 busiest of 261632 links");
  EXPECT_LT(took.count(), 10);  // a look through all links for each pair takes minutes
}

TEST(Predict, SilentLinksOfFewHostsAreRecorded) {
  const spec::RunSpec spec = run("all-reduce", 4);
  const Scene here = scene(4, 5, 1);
  const record::NetworkRecord network =
      simulated_run(spec, here, predict(spec, here), 1).result.network.value();
  ASSERT_EQ(network.links.size(), 12u);
  EXPECT_EQ(network.how, "simulated");
  EXPECT_EQ(std::count_if(network.links.begin(), network.links.end(),
                          [](const auto& link) { return link.bytes > 1e5; }),
            4);  // a ring
}

TEST(Predict, EveryStrategyAndCodecCanBePlayed) {
  for (const spec::StrategyInfo& strategy : spec::strategies()) {
    for (const spec::CodecInfo& codec : spec::codecs()) {
      spec::RunSpec spec =
          run(std::string(strategy.name), strategy.one_worker ? 1 : 4, std::string(codec.name));
      if (!strategy.takes_codec && codec.packing != spec::Packing::kNone) continue;
      if (strategy.rhythm == spec::Rhythm::kLocal && codec.packing == spec::Packing::kSigns) continue;
      if (strategy.name == "local-sgd" || strategy.name == "diloco") spec.strategy.every = 4;
      const int64_t ranks = spec.comm.workers + spec.servers();
      Scene here = scene(ranks, 5, 1);
      if (strategy.in_one_process || strategy.name == "hogwild")
        here.seats.assign(static_cast<size_t>(ranks), 0);
      // Threads of one process share the update of 2 ms out; nobody shares passes.
      const double least = strategy.in_one_process && spec::shares_update(spec) ? 30.5 : 32;
      const Prediction step = predict(spec, here);
      EXPECT_TRUE(std::isfinite(step.ms) && step.ms >= least - 1e-6) << spec.label();
      EXPECT_NEAR(step.compute_ms + step.exchange_ms, step.ms, 0.1 * step.ms) << spec.label();
    }
  }
}

TEST(Predict, ReplicasInOneMemoryShareTheUpdateOut) {
  Scene here = scene(4, 5, 1);
  here.seats.assign(4, 0);
  const auto compute = [&](const spec::RunSpec& spec) { return predict(spec, here).compute_ms; };
  EXPECT_NEAR(compute(run("ddp", 4)), 30.5, 1e-6);
  EXPECT_NEAR(compute(run("all-reduce", 4)), 30.5, 1e-6);
  EXPECT_NEAR(compute(run("gather-scatter", 4)), 32, 1e-6);
  EXPECT_NEAR(compute(run("ddp", 4, "int8")), 32, 0.1) << "and what packing costs, which is not compute";
  spec::RunSpec apart = run("ddp", 4);
  apart.strategy.share_update = false;
  EXPECT_NEAR(compute(apart), 32, 1e-6);
  spec::RunSpec over_sockets = run("ddp", 4);
  over_sockets.comm.backend = "gloo";
  EXPECT_NEAR(compute(over_sockets), 32, 1e-6);
  spec::RunSpec whole_tensors = run("ddp", 4);
  whole_tensors.optim.name = "lamb";
  EXPECT_NEAR(compute(whole_tensors), 32, 1e-6);
  here.seats.back() = 1;
  EXPECT_NEAR(compute(run("ddp", 4)), 32, 1e-6) << "several hosts";
}

TEST(Predict, ThousandDevicesTakeFewEvents) {
  const network::Topology topology = ring(1024, 5, 1);
  Engine engine(topology, one_each(1024), 1024, {});
  const int sum = engine.all_reduce(4e7, 4);
  for (int rank = 0; rank < 1024; ++rank) {
    engine.script(engine.actor(rank)) = {{.kind = Action::Kind::kStart, .operation = sum},
                                         {.kind = Action::Kind::kWait, .operation = sum}};
  }
  engine.play();
  EXPECT_LT(engine.events(), 3'000'000);
}

TEST(Predict, RefusesWhatCannotRun) {
  spec::RunSpec spec = run("ddp", 2);
  spec.train.global_batch = 0;
  spec.train.batch_size = -1;
  EXPECT_THROW(predict(spec, scene(2, 1, 1)), ConfigError);
  EXPECT_THROW(predict(run("data-parallel", 2), scene(2, 1, 1)), ConfigError);  // two hosts, one memory
}

}  // namespace
}  // namespace syncopate::sim
