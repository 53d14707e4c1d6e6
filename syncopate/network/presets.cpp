#include "syncopate/network/presets.h"

#include <array>
#include <functional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/network/assemble.h"

namespace syncopate::network {
namespace {

struct Between {
  const char* a;
  const char* b;
  double latency_ms;
  double gbit;
};

std::string numbered(std::string_view region, int k) {
  std::string name(region);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("{}-{}", name, k);
}

/// `count` hosts of one device in each region; hosts of one region are joined by `inside`.
template <size_t Regions, size_t Pairs>
Topology regions(const char* name, const std::array<const char*, Regions>& names, int count,
                 const Link& inside, const std::array<Between, Pairs>& pairs) {
  std::vector<Host> hosts;
  std::vector<LinkLine> lines;
  for (const char* region : names) {
    for (int k = 0; k < count; ++k) hosts.push_back({.name = numbered(region, k), .region = region});
    lines.push_back({region, region, inside, inside});
  }
  for (const Between& pair : pairs) {
    const Link link{.latency_ms = pair.latency_ms, .gbit = pair.gbit};
    lines.push_back({pair.a, pair.b, link, link});
  }
  return assemble(name, std::move(hosts), lines);
}

/// Boxes of several devices, and everything across at one rate.
Topology boxes(const char* name, const std::vector<std::pair<int, int>>& boxes_of_devices, double gbit) {
  std::vector<Host> hosts;
  std::vector<LinkLine> lines;
  for (const auto& [count, devices] : boxes_of_devices) {
    for (int k = 0; k < count; ++k) {
      hosts.push_back({.name = fmt::format("{}-{}", devices > 1 ? "box" : "machine", k),
                       .region = "datacenter",
                       .devices = devices});
      if (devices > 1) lines.push_back({hosts.back().name, hosts.back().name, kMemory, kMemory});
    }
  }
  const Link across{.latency_ms = 0, .gbit = gbit};
  lines.push_back({"datacenter", "datacenter", across, across});
  return assemble(name, std::move(hosts), lines);
}

/// Eight machines of eight GPUs on 25 Gbit/s, of which each GPU has an eighth.
Topology datacenter() { return boxes("datacenter", {{8, 8}}, 3.125); }

Topology spot() { return boxes("spot", {{8, 4}, {32, 1}}, 1.25); }

Topology two_sites() {
  return regions("two-sites", std::array{"Ohio", "Virginia"}, 32, {.latency_ms = 1, .gbit = 5},
                 std::array{Between{"Ohio", "Virginia", 11, 1.12}});
}

Topology regional() {
  return regions(
      "regional", std::array{"Virginia", "Oregon", "California", "Ohio"}, 16, {.latency_ms = 5, .gbit = 2},
      std::array{Between{"Virginia", "Oregon", 67, 1.15}, Between{"Virginia", "California", 59, 1.05},
                 Between{"Virginia", "Ohio", 11, 1.12}, Between{"Oregon", "California", 12, 1.25},
                 Between{"Oregon", "Ohio", 49, 1.10}, Between{"California", "Ohio", 52, 1.02}});
}

Topology worldwide() {
  return regions(
      "worldwide",
      std::array{"Oregon", "Virginia", "Ohio", "Tokyo", "Seoul", "London", "Frankfurt", "Ireland"}, 8,
      {.latency_ms = 5, .gbit = 2},
      std::array{Between{"Oregon", "Virginia", 67, 0.79},  Between{"Oregon", "Ohio", 49, 1.10},
                 Between{"Oregon", "Tokyo", 96, 0.523},    Between{"Oregon", "Seoul", 124, 0.46},
                 Between{"Oregon", "London", 136, 0.42},   Between{"Oregon", "Frankfurt", 143, 0.404},
                 Between{"Oregon", "Ireland", 124, 0.482}, Between{"Virginia", "Ohio", 11, 1.12},
                 Between{"Virginia", "Tokyo", 143, 0.524}, Between{"Virginia", "Seoul", 172, 0.500},
                 Between{"Virginia", "London", 76, 1.16},  Between{"Virginia", "Frankfurt", 90, 1.02},
                 Between{"Virginia", "Ireland", 67, 1.05}, Between{"Ohio", "Tokyo", 130, 0.694},
                 Between{"Ohio", "Seoul", 159, 0.529},     Between{"Ohio", "London", 86, 1.05},
                 Between{"Ohio", "Frankfurt", 99, 0.799},  Between{"Ohio", "Ireland", 77, 1.14},
                 Between{"Tokyo", "Seoul", 34, 1.10},      Between{"Tokyo", "London", 210, 0.366},
                 Between{"Tokyo", "Frankfurt", 223, 0.36}, Between{"Tokyo", "Ireland", 199, 0.465},
                 Between{"Seoul", "London", 238, 0.342},   Between{"Seoul", "Frankfurt", 235, 0.358},
                 Between{"Seoul", "Ireland", 228, 0.335},  Between{"London", "Frankfurt", 14, 1.14},
                 Between{"London", "Ireland", 12, 1.09},   Between{"Frankfurt", "Ireland", 24, 1.08}});
}

const std::array<std::pair<std::string_view, Topology (*)()>, 5> kPresets{{{"datacenter", datacenter},
                                                                           {"spot", spot},
                                                                           {"two-sites", two_sites},
                                                                           {"regional", regional},
                                                                           {"worldwide", worldwide}}};

}  // namespace

std::optional<Topology> preset(std::string_view name) {
  for (const auto& [known, make] : kPresets) {
    if (known == name) return make();
  }
  return std::nullopt;
}

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [known, make] : kPresets) all.emplace_back(known);
    return all;
  }();
  return names;
}

}  // namespace syncopate::network
