// What `syncopate probe` measures, and where runs sit on a network.
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/process.h"
#include "syncopate/comm/together/machine.h"
#include "syncopate/lifeline/server.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/probe/link_probe.h"
#include "syncopate/run/probe/settling.h"
#include "syncopate/run/probe/step_probe.h"
#include "tests/support/fixtures.h"
#include "tests/support/runs.h"

namespace syncopate::run {
namespace {

TEST(RoundsOfPairs, MeetEveryPairOnceAndNobodyTwiceInARound) {
  for (const int n : {1, 2, 3, 7, 8}) {
    std::set<std::pair<int, int>> met;
    for (const auto& round : rounds_of_pairs(n)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        EXPECT_TRUE(met.insert({a, b}).second) << n;
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(n * (n - 1) / 2));
  }
}

TEST(Settling, TakesTheRateAfterTheSlowStart) {
  Settling settling(4);
  for (const double rate : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    settling.add(rate);
    EXPECT_FALSE(settling.settled()) << "it still grows";
  }
  for (const double rate : {20.0, 20.2, 19.9}) settling.add(rate);
  EXPECT_FALSE(settling.settled()) << "one of the last four is from the start";
  settling.add(20.1);
  EXPECT_TRUE(settling.settled());
  EXPECT_NEAR(settling.rate(), 20.05, 1e-9);
}

/// Ranks as threads on loopback, on the hosts named.
/// A stranger comes to the last one's door before the others and says nothing.
std::optional<MeasuredLinks> probe_hosts(const std::vector<std::string>& hosts, bool measures) {
  lifeline::LifelineServerOptions where;
  where.size = static_cast<int>(hosts.size());
  where.key = "k";
  lifeline::LifelineServer server(where);
  std::vector<std::future<std::optional<MeasuredLinks>>> ranks;
  for (int rank = 0; rank < where.size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      lifeline::LifelineOptions options;
      options.server = {"127.0.0.1", server.port()};
      options.rank = rank;
      options.size = where.size;
      options.key = where.key;
      lifeline::Lifeline line(options);
      line.await_all(options.timeout);
      LinkProbeOptions probe;
      probe.seat = {.host = hosts[static_cast<size_t>(rank)], .region = "here", .machine = "this"};
      probe.measures = measures;
      probe.seconds = 1;
      probe.timeout = std::chrono::seconds(10);
      lifeline::Socket stranger;
      if (rank == 0) {
        const auto last = nlohmann::json::parse(
            line.get(fmt::format("probe/rank/{}", where.size - 1), std::chrono::seconds(10)));
        stranger = lifeline::connect_to({last.at("address"), last.at("port")},
                                        std::chrono::steady_clock::now() + std::chrono::seconds(10));
      }
      auto found = probe_links(line, probe);
      line.goodbye();
      return found;
    }));
  }
  std::optional<MeasuredLinks> first = ranks[0].get();
  for (size_t rank = 1; rank < ranks.size(); ++rank) EXPECT_FALSE(ranks[rank].get()) << "rank 0 knows it";
  server.close();
  return first;
}

TEST(LinkProbe, FindsHostsTheirDevicesAndTheLinksBetween) {
  const auto measured = probe_hosts({"a", "a", "b"}, true);
  ASSERT_TRUE(measured);
  const network::Topology& topology = measured->topology;
  ASSERT_EQ(topology.size(), 2);
  EXPECT_EQ(topology.hosts()[0].name, "a");
  EXPECT_EQ(topology.hosts()[0].devices, 2);
  EXPECT_EQ(topology.hosts()[1].devices, 1);
  EXPECT_EQ(measured->seats, (std::vector<int>{0, 0, 1}));
  EXPECT_TRUE(measured->one_machine);
  for (const auto& [from, to] : {std::pair{0, 0}, {0, 1}, {1, 0}}) {
    EXPECT_GT(topology.link(from, to).gbit, 0.05);
    EXPECT_NE(topology.link(from, to).gbit, network::kMemory.gbit) << "measured";
    EXPECT_GT(topology.link(from, to).latency_ms, 0);
    EXPECT_LT(topology.link(from, to).latency_ms, 50);
  }
  EXPECT_EQ(network::from_toml(network::to_toml(topology), "measured"), topology);
  const auto looked = probe_hosts({"a", "b"}, false);
  EXPECT_EQ(looked->topology.link(0, 1), network::kMemory) << "not measured";
}

TEST(LinkProbe, SaysWhichDirectionIsDead) {
  EXPECT_DOUBLE_EQ(gbit_on_wire(1448e6 / 12, 1448.0 / 1500, "a", "b"), 1);
  const std::string said = test::sentence<CommError>([] { gbit_on_wire(0, 1, "a", "b"); });
  EXPECT_NE(said.find("from a to b"), std::string::npos) << said;
}

TEST(MachineOfALab, IsOneThoughHostsHaveNames) {
  const std::string outside = comm::machine_id();
  EXPECT_NE(outside.find(host_name()), std::string::npos);
  ::setenv("SYNCOPATE_LAB", "x", 1);
  const std::string inside = comm::machine_id();
  ::unsetenv("SYNCOPATE_LAB");
  EXPECT_EQ(inside, outside.substr(host_name().size())) << "the same in all";
}

TEST(LabOfARun, MayBeGoneAtItsEnd) {
  std::vector<std::string> notes;
  const auto note = [&](const std::string& text) { notes.push_back(text); };
  EXPECT_FALSE(report_of_lab(note)) << "in no lab";
  EXPECT_TRUE(notes.empty());
  ::setenv("SYNCOPATE_LAB", "/nowhere/lab.sock", 1);
  EXPECT_FALSE(report_of_lab(note));
  ::unsetenv("SYNCOPATE_LAB");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("/nowhere/lab.sock"), std::string::npos) << notes[0];
}

TEST(StepProbe, MeasuresTimesReadyGradientsAndLayers) {
  test::TempDir folder;
  spec::RunSpec spec;
  spec.task.name = "sst2";
  spec.task.data = test::small_sst2(folder);
  spec.train.global_batch = 8;
  spec.comm.workers = 2;
  spec.complete();
  EXPECT_EQ(batch_of_worker(spec), 4);
  const sim::Profile profile = probe_step(spec, set_up_compute(1), {.batches = {2, 4}, .seconds = 0.2});
  ASSERT_EQ(profile.times.size(), 2u);
  EXPECT_EQ(profile.times[1].batch, 4);
  for (const sim::BatchTime& time : profile.times) {
    EXPECT_GT(time.forward_s, 0);
    EXPECT_GT(time.backward_s, 0);
    EXPECT_GT(time.update_s, 0);
    EXPECT_GT(time.peak_memory, 0);
  }
  ASSERT_FALSE(profile.parameters.empty());
  double latest = 0;
  for (const sim::ParameterProfile& each : profile.parameters) {
    EXPECT_GE(each.ready, 0) << each.name;
    EXPECT_LE(each.ready, 1) << each.name;
    latest = std::max(latest, each.ready);
    const bool table = each.name.find("word_embeddings") != std::string::npos;
    EXPECT_EQ(each.rows > 0, table) << each.name;
  }
  EXPECT_LT(profile.parameters.front().ready, latest) << "the head's gradient comes before others";
  double share = 0;
  int64_t parameters = 0;
  for (const sim::LayerProfile& layer : profile.layers) {
    share += layer.share;
    parameters += layer.parameters;
    EXPECT_GT(layer.output_bytes, 0) << layer.name;
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(parameters, profile.elements()) << "each parameter is in one layer";
  ASSERT_EQ(profile.layers.size(), 2u) << "what a pipeline may not cut: bert-tiny's blocks";
  EXPECT_EQ(profile.layers[0].channels, 128);
  EXPECT_LE(profile.layers[0].output_bytes, 4.0 * 128 * static_cast<double>(spec.max_length()));
  for (const sim::ParameterProfile& each : profile.parameters) {
    const bool first = each.name.find("embeddings") != std::string::npos;
    EXPECT_TRUE(!first || each.layer == 0) << each.name << " stays with the first block";
    EXPECT_TRUE(each.layer == 0 || each.layer == 1) << each.name;
  }
  EXPECT_GT(profile.real_share, 0);
  EXPECT_LT(profile.real_share, 1) << "texts of different lengths are padded";
  EXPECT_EQ(sim::to_json(mean_of({profile, profile})), sim::to_json(profile));
  sim::Profile slower = profile;
  slower.times[0].forward_s *= 3;
  EXPECT_DOUBLE_EQ(mean_of({profile, slower}).times[0].forward_s, 2 * profile.times[0].forward_s);
}

TEST(Placement, SeatsWorkersOnScaledHosts) {
  spec::RunSpec spec;
  spec.network = {.name = "two-sites", .hosts = "", .scale = 100};
  const Placement placement = place(spec, 2);
  EXPECT_EQ(placement.seats, (std::vector<int>{0, 1}));
  ASSERT_EQ(placement.topology.size(), 2);
  EXPECT_NE(placement.topology.hosts()[0].region, placement.topology.hosts()[1].region) << "spread";
  EXPECT_DOUBLE_EQ(placement.topology.link(0, 1).gbit, 0.0112);
  spec.network.hosts = "ohio-3,ohio-1";
  const Placement chosen = place(spec, 2);
  EXPECT_EQ(chosen.topology.hosts()[0].name, "ohio-3");
  EXPECT_NE(chosen.topology, placement.topology);
}

TEST(Placement, KeepsSharedMemoryOnOneHost) {
  spec::RunSpec spec;
  spec.network.name = "spot";
  for (const std::string strategy : {"hogwild", "data-parallel"}) {
    spec.strategy.name = strategy;
    spec.network.hosts = "box-0,box-1";
    const std::string complaint = test::sentence<ConfigError>([&] { place(spec, 2); });
    EXPECT_NE(complaint.find("--hosts box-0"), std::string::npos) << complaint;
    spec.network.hosts = "box-0";
    EXPECT_EQ(place(spec, 2).seats, (std::vector<int>{0, 0}));
  }
  spec.strategy.name = "ddp";
  spec.network.hosts = "box-0,box-1";
  EXPECT_EQ(place(spec, 2).seats, (std::vector<int>{0, 1}));
}

TEST(Placement, RecordsWhatLinksCarriedWhileItTrained) {
  spec::RunSpec spec;
  spec.network = {.name = "two-sites", .hosts = "", .scale = 10};
  const Placement placement = place(spec, 2);
  emulation::LabReport before, after;
  before.seconds = 5;
  before.links = {{.from = 0, .to = 1, .bytes = 1000, .dropped = 0, .busy_seconds = 1}};
  after.seconds = 15;
  after.how = "switch";
  after.links = {{.from = 0, .to = 1, .bytes = 9000, .dropped = 0, .busy_seconds = 6}};
  before.lateness = {10};  // of which many were late, before it trained
  before.late = 5;
  after.lateness = {1000};
  after.late = 6;
  const record::NetworkRecord record = network_record(spec, placement, between(before, after), 4);
  EXPECT_EQ(record.name, "two-sites");
  EXPECT_EQ(record.scale, 10);
  EXPECT_TRUE(record.trustworthy);
  ASSERT_EQ(record.links.size(), 2u);
  EXPECT_DOUBLE_EQ(record.links[0].gbit, 0.112);
  EXPECT_EQ(record.links[0].bytes, 2000);
  EXPECT_EQ(record.links[0].busy, 0.5);
  EXPECT_EQ(record.links[1].bytes, 0);
  after.late = 500;
  EXPECT_FALSE(network_record(spec, placement, between(before, after), 4).trustworthy);
  after.late = 6;
  after.changed = 2;
  after.links[0].latency_ms = 40;
  after.links[0].gbit = 0.05;
  const record::NetworkRecord changed = network_record(spec, placement, between(before, after), 4);
  EXPECT_FALSE(changed.trustworthy) << "its steps had different links";
  EXPECT_EQ(changed.links[0].gbit, 0.05);
  EXPECT_EQ(changed.links[0].latency_ms, 40);
  before.changed = 2;
  EXPECT_TRUE(network_record(spec, placement, between(before, after), 4).trustworthy) << "before it trained";
}

}  // namespace
}  // namespace syncopate::run
