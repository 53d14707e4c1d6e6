#include "syncopate/emulation/wire.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/hosts.h"
#include "syncopate/emulation/lateness.h"
#include "syncopate/emulation/limits.h"
#include "syncopate/emulation/namespaces.h"
#include "syncopate/emulation/packet.h"

namespace syncopate::emulation {
namespace {

network::Topology two_hosts(const network::Link& link) {
  return {"pair", {{.name = "east-1"}, {.name = "west-1"}}, {network::kMemory, link, link, network::kMemory}};
}

template <typename Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Wire, SpacesPacketsByTheRateAndDelaysThem) {
  Wire wire({.latency_ms = 5, .gbit = 0.01}, 10, 1);  // 1,500 bytes take 1.2 ms
  EXPECT_EQ(wire.send(1'000'000, 1500, 1), 1'000'000 + 1'200'000 + 5'000'000);
  EXPECT_EQ(wire.send(1'000'000, 1500, 1), 1'000'000 + 2'400'000 + 5'000'000);
  EXPECT_EQ(wire.send(50'000'000, 750, 1), 50'000'000 + 600'000 + 5'000'000);  // the link was free again
  EXPECT_DOUBLE_EQ(wire.bytes(), 3750);
  EXPECT_NEAR(wire.busy_seconds(), 0.003, 1e-9);
  Wire faster({.latency_ms = 5, .gbit = 0.02}, 10, 1);
  EXPECT_NE(faster.send(1'000'000, 1500, 1), 1'000'000 + 1'200'000 + 5'000'000);
}

TEST(Wire, DropsWhatDoesNotFitIntoItsQueue) {
  Wire wire({.latency_ms = 50, .gbit = 1}, 100, 1);
  EXPECT_DOUBLE_EQ(wire.queue_bytes(), 12.5e6);  // of 100 ms at 1 Gbit/s
  int taken = 0;
  while (wire.send(0, 1500, 1)) ++taken;
  EXPECT_NEAR(taken * 1500.0, wire.queue_bytes(), 1500);
  EXPECT_EQ(wire.dropped(), 1);
  EXPECT_TRUE(wire.send(1'000'000, 1500, 1));  // a millisecond later there is room again
  EXPECT_GE(Wire({.latency_ms = 0, .gbit = 0.01}, 0, 1).queue_bytes(), 256 * 1500);
}

TEST(Wire, KeepsTheOrderUnderJitterAndLosesTheShareAskedFor) {
  Wire wire({.latency_ms = 10, .gbit = 10, .jitter_ms = 5, .loss = 0.1}, 20, 7);
  int64_t last = 0, earliest = 1'000'000'000, latest = 0;
  for (int k = 0; k < 20000; ++k) {
    const int64_t now = k * 10'000'000LL;
    const auto due = wire.send(now, 1500, 1);
    if (!due) continue;
    EXPECT_GE(*due, last);
    last = *due;
    earliest = std::min(earliest, *due - now);
    latest = std::max(latest, *due - now);
  }
  EXPECT_NEAR(wire.dropped() / 20000, 0.1, 0.01);
  EXPECT_NEAR(static_cast<double>(earliest), 5e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(latest), 15e6, 0.1e6);
}

TEST(Wire, CarriesNothingWhileItIsCut) {
  Wire wire({.latency_ms = 1, .gbit = 1}, 2, 1);
  EXPECT_TRUE(wire.send(0, 100, 1));
  wire.cut();
  EXPECT_FALSE(wire.send(0, 100, 1));
  std::vector<int64_t> none;
  wire.change({.latency_ms = 30, .gbit = 1}, 60, 0, none);
  EXPECT_GT(wire.send(0, 100, 1).value_or(0), 30'000'000);
}

TEST(Wire, SendsWhatWaitsAtTheNewRate) {
  Wire wire({.latency_ms = 5, .gbit = 0.001}, 10, 1);  // 1,500 bytes take 12 ms
  std::vector<int64_t> dues;
  while (const auto due = wire.send(0, 1500, 1)) dues.push_back(*due);
  ASSERT_EQ(dues.size(), 256u);
  const std::vector<int64_t> old(dues.begin() + 2, dues.end());
  dues.erase(dues.begin());  // arrived
  // The second left the queue at 24 ms and is on the way; the third leaves at 36 ms.
  constexpr int64_t kNow = 26'000'000;
  wire.change({.latency_ms = 1, .gbit = 0.01}, 2, kNow, dues);
  EXPECT_EQ(dues[0], 29'000'000) << "as it was told";
  EXPECT_EQ(dues[1], 29'000'000) << "left at 27 ms, and does not overtake";
  EXPECT_EQ(dues[2], 26'000'000 + (48'000'000 - kNow) / 10 + 1'000'000);
  EXPECT_LT(dues.back(), old.back() / 5);
  const auto next = wire.send(kNow + 20'000'000, 1500, 1);
  ASSERT_TRUE(next) << "the old backlog keeps nobody out";
  EXPECT_NEAR(static_cast<double>(*next - dues.back()), 1.2e6, 2);
  Wire same({.latency_ms = 5, .gbit = 0.001}, 10, 1);
  std::vector<int64_t> told{*same.send(0, 1500, 1), *same.send(0, 1500, 1)};
  const std::vector<int64_t> before = told;
  same.change({.latency_ms = 5, .gbit = 0.001}, 10, 0, told);
  EXPECT_EQ(told, before);
}

/// An offload header, an Ethernet and an IPv4 and TCP header with timestamps before `payload` bytes.
std::vector<uint8_t> frame(size_t payload, uint16_t segment_size) {
  std::vector<uint8_t> bytes(kOffloadHeader + kEthernetHeader + 20 + 32 + payload);
  if (segment_size > 0) {
    bytes[1] = 1;  // TCP over IPv4
    bytes[4] = static_cast<uint8_t>(segment_size & 255);
    bytes[5] = static_cast<uint8_t>(segment_size >> 8);
  }
  uint8_t* const ethernet = bytes.data() + kOffloadHeader;
  ethernet[12] = 0x08;
  uint8_t* const ip = ethernet + kEthernetHeader;
  ip[0] = 0x45;
  const uint32_t to = address_of(1);
  for (size_t k = 0; k < 4; ++k) ip[16 + k] = static_cast<uint8_t>(to >> (24 - 8 * k));
  ip[20 + 12] = 8 << 4;
  return bytes;
}

TEST(Packet, CountsTheHeadersOfEverySegment) {
  const auto bytes = frame(10 * 1448, 1448);
  const auto packet = read_packet(bytes.data(), bytes.size());
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->segments, 10);
  EXPECT_EQ(packet->wire_bytes, 10 * 1500);
  EXPECT_EQ(packet->destination, address_of(1));
  const auto odd = frame(10 * 1448 + 1, 1448);
  EXPECT_EQ(read_packet(odd.data(), odd.size())->wire_bytes, 10 * 1500 + 53);
  const auto single = frame(1448, 0);
  EXPECT_EQ(read_packet(single.data(), single.size())->wire_bytes, 1500);
}

TEST(Packet, LeavesOthersAlone) {
  auto bytes = frame(100, 0);
  EXPECT_FALSE(read_packet(bytes.data(), 30));
  bytes[kOffloadHeader + 12] = 0x86;  // IPv6
  EXPECT_FALSE(read_packet(bytes.data(), bytes.size()));
}

TEST(LatenessCounts, GivesQuantilesAndTheShareBeyondTheBound) {
  Lateness lateness;
  for (int k = 1; k <= 1000; ++k) lateness.add(k * 2000, 0);  // to 2 ms
  const std::vector<double> counts(lateness.counts().begin(), lateness.counts().end());
  EXPECT_NEAR(late_ms(counts, 0.5), 1.0, 0.1);
  EXPECT_NEAR(late_ms(counts, 0.99), 1.98, 0.15);
  EXPECT_DOUBLE_EQ(lateness.max_ms(), 2);
  EXPECT_EQ(lateness.beyond(), 500u);
  Lateness far;  // 2 ms of 100 are nothing
  for (int k = 1; k <= 1000; ++k) far.add(k * 2000, 100'000'000);
  EXPECT_EQ(far.beyond(), 0u);
}

TEST(LabReports, JudgeWhatWasBetweenTwoOfThem) {
  LabReport before, after;
  before.late_ms_max = after.late_ms_max = 50;
  before.lateness = {100, 0, 100};  // a start that was late
  before.late = 100;
  before.taken = 200;
  after.lateness = {1000, 0, 105};
  after.late = 105;
  after.taken = 1105;
  after.changed = before.changed = 2;
  judge(after);
  EXPECT_FALSE(after.trustworthy) << "over its whole life";
  const LabReport meanwhile = between(before, after);
  EXPECT_TRUE(meanwhile.trustworthy);
  EXPECT_EQ(meanwhile.changed, 0);
  EXPECT_LT(meanwhile.late_ms_p99, after.late_ms_p99);
  after.late = 150;
  EXPECT_FALSE(between(before, after).trustworthy);
  after.late = 105;
  after.missed = 10;
  EXPECT_FALSE(between(before, after).trustworthy);
}

TEST(LabLimits, RefusesRatesBeyondTheSwitchWithTheScaleThatFits) {
  const std::string said =
      config_error([] { check_can_be_emulated(two_hosts({.latency_ms = 1, .gbit = 100})); });
  EXPECT_NE(said.find("2 hosts can send 200 Gbit/s together"), std::string::npos) << said;
  EXPECT_NE(said.find("by 20 or more with --scale"), std::string::npos) << said;
  const auto scaled = [](double gbit, double scale) {
    return config_error(
        [&] { check_can_be_emulated(two_hosts({.latency_ms = 1, .gbit = gbit}).scaled(scale)); });
  };
  EXPECT_EQ(scaled(100, 20), "no error");
  EXPECT_NE(scaled(100, 19.9), "no error");
  EXPECT_NE(scaled(100.0 / 7, 1).find("by 2.858 or more"), std::string::npos) << "rounded up";
  EXPECT_EQ(scaled(100.0 / 7, 2.858), "no error");
  const network::Topology datacenter = network::load("datacenter");  // no link is beyond it, all together are
  EXPECT_NE(config_error([&] { check_can_be_emulated(datacenter); }).find("2.5 or more"), std::string::npos);
  EXPECT_EQ(config_error([&] { check_can_be_emulated(datacenter.scaled(2.5)); }), "no error");
}

TEST(LabLimits, RefusesNamesThatNoMachineCanHave) {
  const auto said = [](const std::string& name) {
    const network::Topology topology("n", {{.name = name}}, {network::kMemory});
    return config_error([&] { check_can_be_emulated(topology); });
  };
  EXPECT_EQ(said("node_1.example-2.org"), "no error");
  EXPECT_EQ(said(std::string(63, 'a')), "no error");
  for (const std::string& name :
       {std::string(64, 'a'), std::string("two words"), std::string("a\n10.0.0.1 b"), std::string("büro")})
    EXPECT_NE(said(name), "no error") << name;
}

TEST(LabAdvice, IsAboutTheLimitThatWasReached) {
  EXPECT_NE(advice_for(EMFILE).find("ulimit -n"), std::string::npos);
  EXPECT_EQ(advice_for(EPERM).find("ulimit -n"), std::string::npos);
}

TEST(LabChanges, FindsTheHostsOfALinkThoughNamesHaveDashes) {
  const network::Topology topology = two_hosts({.latency_ms = 1, .gbit = 1});
  EXPECT_EQ(parse_between(topology, "west-1-east-1"), std::pair(1, 0));
  EXPECT_EQ(parse_between(topology, "0-1"), std::pair(0, 1));
  EXPECT_NE(config_error([&] { parse_between(topology, "east-1-north"); }).find("east-1, west-1"),
            std::string::npos);
  EXPECT_NE(config_error([&] { parse_between(topology, "east-1-east-1"); }).find("one host"),
            std::string::npos);
}

TEST(LabChanges, RefusesWhatALinkCannotBe) {
  LinkChange change;
  read_assignment("gbit=0.5", change);
  read_assignment("latency_ms=0", change);
  EXPECT_EQ(change.gbit, 0.5);
  EXPECT_EQ(change.latency_ms, 0.0);
  for (const char* bad : {"gbit=0", "gbit=-1", "latency_ms=-1", "loss=1", "gbit=fast", "gbit", "rate=1"})
    EXPECT_NE(config_error([&] { read_assignment(bad, change); }), "no error") << bad;
  EXPECT_NE(config_error([&] { read_assignment("latency=1", change); }).find("latency_ms"),
            std::string::npos);
}

TEST(LabReports, AreReadBackAsWritten) {
  LabReport report;
  report.how = "switch";
  report.congestion_control = "cubic";
  report.late_ms_p99 = 0.25;
  report.trustworthy = false;
  report.links = {
      {.from = 0, .to = 1, .bytes = 1e10, .dropped = 3, .busy_seconds = 0.5, .latency_ms = 2, .gbit = 1}};
  report.changed = 2;
  report.late = 3;
  report.taken = 4;
  report.missed = 5;
  report.lateness = {1, 2};
  const LabReport back = report_from_json(to_json(report));
  EXPECT_EQ(to_json(back), to_json(report));
  EXPECT_NE(to_json(back), to_json(LabReport{}));
}

TEST(LabBuffers, HoldSeveralTimesWhatIsOnTheWay) {
  EXPECT_GE(tcp_buffer(two_hosts({.latency_ms = 125, .gbit = 1})), 3 * 31'250'000);
  EXPECT_LT(tcp_buffer(two_hosts({.latency_ms = 1, .gbit = 0.01})), 32 << 20);
}

}  // namespace
}  // namespace syncopate::emulation
