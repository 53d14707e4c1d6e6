#include "syncopate/network/topology.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using network::from_toml;
using network::Host;
using network::Link;
using network::load;
using network::seats;
using network::Topology;

void expect_complaint(const std::function<void()>& act, const std::vector<std::string>& words) {
  try {
    act();
    ADD_FAILURE() << "nothing was said of " << words.front();
  } catch (const Error& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << word << " in: " << error.what();
    }
  }
}

const std::string kTwo = R"(
[[host]]
name = "a"
region = "east"
devices = 2
price_hour = 3.5
[[host]]
name = "b"
region = "west"
memory_gib = 16
speed = 0.5
[[link]]
between = ["east", "west"]
latency_ms = 30
gbit = 0.5
gbit_back = 0.25
)";

TEST(ClusterFile, SaysHostsAndBothDirections) {
  const Topology two = from_toml(kTwo, "two.toml");
  EXPECT_EQ(two.name(), "two");
  ASSERT_EQ(two.size(), 2);
  EXPECT_EQ(two.devices(), 3);
  EXPECT_EQ(two.host_of(1), 0);
  EXPECT_EQ(two.host_of(2), 1);
  EXPECT_EQ(two.hosts()[0].price_hour, 3.5);
  EXPECT_EQ(two.hosts()[1].memory_gib, 16);
  EXPECT_EQ(two.hosts()[1].speed, 0.5);
  EXPECT_EQ(two.link(0, 1), (Link{.latency_ms = 30, .gbit = 0.5}));
  EXPECT_EQ(two.link(1, 0), (Link{.latency_ms = 30, .gbit = 0.25}));
  EXPECT_EQ(two.link(0, 0).latency_ms, 0) << "devices of one host share its memory";
  EXPECT_EQ(two.scaled(10).link(0, 1).gbit, 0.05);
  EXPECT_EQ(two.scaled(10).link(0, 1).latency_ms, 30);
  EXPECT_EQ(two.scaled(10).link(0, 0), two.link(0, 0)) << "memory stays as fast";
}

TEST(ClusterFile, ScalesKeepRatesWithinReason) {
  const Topology two = from_toml(kTwo, "two.toml");  // 0.25 and 0.5 Gbit/s; memory is not scaled
  for (const double scale : {1e300, 3e8, 4e-7, 1e-300})
    expect_complaint([&] { two.scaled(scale); }, {"--scale", "1 bit/s", "5e-07 to 2.5e+08"});
  EXPECT_NO_THROW(two.scaled(2.4e8));
  EXPECT_NO_THROW(two.scaled(6e-7));
  expect_complaint([&] { two.scaled(0); }, {"above 0"});
  EXPECT_EQ(two.scaled(3).link(1, 1), network::kMemory) << "nobody uses it";
  const auto with_rate = [&](const char* rate) {
    std::string text = kTwo;
    text.replace(text.find("gbit = 0.5"), 10, std::string("gbit = ") + rate);
    return from_toml(text, "two.toml");
  };
  for (const char* rate : {"1e300", "1.1e6", "1e-10"})
    expect_complaint([&] { with_rate(rate); }, {"link from a to b", "gbit", "1 bit/s"});
  EXPECT_EQ(with_rate("1e6").link(0, 1).gbit, 1e6);
}

TEST(ClusterFile, HostsCountBeforeRegions) {
  const std::string hosts = R"(
[[host]]
name = "a"
region = "r"
[[host]]
name = "b"
region = "r"
[[host]]
name = "c"
region = "r"
)";
  const std::string inside = "[[link]]\nbetween = [\"r\", \"r\"]\nlatency_ms = 1\ngbit = 10\n";
  const std::string closer = "[[link]]\nbetween = [\"c\", \"a\"]\nlatency_ms = 2\ngbit = 3\ngbit_back = 4\n";
  for (const std::string& text : {hosts + inside + closer, hosts + closer + inside}) {
    const Topology three = from_toml(text, "three.toml");
    EXPECT_EQ(three.link(0, 1).gbit, 10);
    EXPECT_EQ(three.link(2, 0).gbit, 3);
    EXPECT_EQ(three.link(0, 2).gbit, 4);
    EXPECT_EQ(three.link(0, 2).latency_ms, 2);
  }
}

TEST(ClusterFile, IsReadBackAsWritten) {
  for (const std::string& name : network::preset_names()) {
    const Topology preset = load(name);
    EXPECT_EQ(from_toml(to_toml(preset), name + ".toml"), preset) << name;
    EXPECT_NE(from_toml(to_toml(preset.scaled(2)), name + ".toml"), preset) << name;
  }
  std::vector<Host> hosts;
  std::vector<Link> links;
  for (int k = 0; k < 5; ++k)
    hosts.push_back(
        {.name = fmt::format("h\"{}", k), .region = k < 3 ? "x" : "y \\", .devices = k + 1, .speed = 1.1});
  for (int k = 0; k < 25; ++k) links.push_back({.latency_ms = 0.1, .gbit = 0.1 + k / 7.0});
  const Topology uneven("uneven", hosts, links);
  EXPECT_EQ(from_toml(to_toml(uneven), "x.toml"), uneven) << "a rate for each direction";
  for (double Link::*part : {&Link::latency_ms, &Link::jitter_ms, &Link::loss}) {
    std::vector<Link> ways(4, {.latency_ms = 9, .gbit = 1, .jitter_ms = 2, .loss = 0.5});
    ways[2].*part = 0.25 + 10 * (part == &Link::latency_ms);
    const Topology two("two", {{.name = "a"}, {.name = "b"}}, ways);
    EXPECT_EQ(from_toml(to_toml(two), "x.toml"), two) << to_toml(two);
    std::swap(ways[1], ways[2]);
    EXPECT_NE(Topology("two", {{.name = "a"}, {.name = "b"}}, ways), two) << "the other way around";
  }
}

TEST(ClusterFile, MistakesAreNamed) {
  const auto complains = [](const std::string& text, const std::vector<std::string>& words) {
    expect_complaint([&] { from_toml(text, "bad.toml"); }, words);
  };
  complains("", {"no host"});
  complains("[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n", {"between a and b", "[[link]]"});
  complains("[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\n", {"a", "twice"});
  complains("[[host]]\nregion = \"a\"\n", {"bad.toml, line 1", "name"});
  complains("[[host]]\nname = \"a\"\ndevice = 2\n", {"\"device\"", "devices"});
  complains("[[host]]\nname = \"a\"\ndevices = 0\n", {"a", "devices", "0"});
  complains("[[hosts]]\nname = \"a\"\n", {"hosts", "host"});
  complains("[[host]\n", {"bad.toml, line 1"});
  complains(kTwo + "[[link]]\nbetween = [\"east\", \"wset\"]\nlatency_ms = 1\ngbit = 1\n", {"wset", "west"});
  complains(kTwo + "[[link]]\nbetween = [\"west\", \"east\"]\nlatency_ms = 1\ngbit = 1\n",
            {"two links", "a", "b"});
  const std::string link =
      "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \"b\"]\n";
  complains(link + "gbit = 1\n", {"line 5", "latency_ms"});
  complains(link + "gbit = 0\nlatency_ms = 1\n", {"gbit", "above 0"});
  complains(link + "gbit = -1\nlatency_ms = 1\n", {"gbit", "-1"});
  complains(link + "gbit = nan\nlatency_ms = 1\n", {"gbit", "finite"});
  complains(link + "gbit = 1\nlatency_ms = -1\n", {"latency_ms", "-1"});
  complains(link + "gbit = 1\nlatency_ms = 1\nloss = 1\n", {"loss"});
  complains(link + "gbit = 1\nlatency_ms = 1\nlatency_back_ms = -1\n", {"latency_ms", "-1"});
  complains(kTwo + "[[link]]\nbetween = [\"a\", \"a\"]\nlatency_ms = 1\ngbit = 1\nloss_back = 0.5\n",
            {"loss_back", "one direction"});
  complains(link + "gbit = \"1\"\nlatency_ms = 1\n", {"gbit", "number"});
  expect_complaint([] { load("worldwid"); }, {"worldwid", "worldwide"});
  expect_complaint([] { load("/nowhere/x.toml"); }, {"/nowhere/x.toml"});
  expect_complaint([] { Topology("m", {{.name = "a"}, {.name = "b"}}, {{}, {}, {}}); }, {"square", "4", "3"});
}

TEST(Presets, HaveThePublishedFigures) {
  for (const std::string& name : network::preset_names()) EXPECT_EQ(load(name).devices(), 64) << name;
  const Topology world = load("worldwide");
  EXPECT_EQ(world.regions().size(), 8u);
  EXPECT_EQ(world.link(world.find("tokyo-0"), world.find("london-7")),
            (Link{.latency_ms = 210, .gbit = 0.366}));
  EXPECT_EQ(world.link(world.find("tokyo-0"), world.find("tokyo-1")), (Link{.latency_ms = 5, .gbit = 2}));
  const Topology datacenter = load("datacenter");
  EXPECT_EQ(datacenter.between_devices(0, 7).gbit, 100);
  EXPECT_EQ(datacenter.between_devices(0, 8).gbit, 3.125);
  EXPECT_EQ(load("spot").between_devices(0, 63).gbit, 1.25);
  EXPECT_EQ(load("two-sites").link(0, 40), (Link{.latency_ms = 11, .gbit = 1.12}));
  EXPECT_EQ(load("regional").link(0, 17).latency_ms, 67);
}

TEST(Seats, AreDealtOutOverTheRegions) {
  const Topology world = load("worldwide");
  EXPECT_EQ(seats(world, "", 3), (std::vector<int>{0, 8, 16}))
      << "a host of each region, not the first three";
  EXPECT_EQ(seats(world, "", 9), (std::vector<int>{0, 8, 16, 24, 32, 40, 48, 56, 1}));
  EXPECT_EQ(seats(world, "tokyo-3, 0", 2), (std::vector<int>{27, 0})) << "as they were named";
  const Topology datacenter = load("datacenter");
  EXPECT_EQ(seats(datacenter, "", 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(seats(datacenter, "1,0", 5), (std::vector<int>{1, 1, 1, 0, 0})) << "neighbours share a host";
  EXPECT_EQ(seats(datacenter, "", 64).back(), 7);
  expect_complaint([&] { seats(datacenter, "", 65); }, {"65", "64 devices"});
  expect_complaint([&] { seats(world, "0,1", 3); }, {"3", "2 devices"});
  expect_complaint([&] { seats(world, "tokio-3", 1); }, {"tokio-3", "tokyo-3"});
  expect_complaint([&] { seats(world, "64", 1); }, {"64", "63"});
  expect_complaint([&] { seats(world, "0,oregon-0", 2); }, {"oregon-0", "twice"});
}

}  // namespace
}  // namespace syncopate::test
