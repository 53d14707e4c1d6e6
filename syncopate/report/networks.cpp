// Where arms' workers sat, and which arms nobody trained.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "syncopate/report/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// The links that carried something. Where nobody counted, all of them.
void keep_used_links(record::NetworkRecord& network) {
  const auto counted = [](const record::NetworkRecord::Link& link) { return std::isfinite(link.bytes); };
  if (std::none_of(network.links.begin(), network.links.end(), counted)) return;
  std::erase_if(network.links, [](const record::NetworkRecord::Link& link) { return !(link.bytes > 0); });
}

/// "worldwide ÷ 100 (8 hosts in 8 regions, emulated on one machine)".
std::string told(const ArmResult& arm) {
  std::string text = network_text(arm.on);
  if (!arm.network) return text;
  std::set<std::string> regions;
  for (const record::NetworkRecord::Host& host : arm.network->hosts) regions.insert(host.region);
  const auto count = [](size_t number, const char* one) {
    return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
  };
  text +=
      fmt::format(" ({} in {}{})", count(arm.network->hosts.size(), "host"), count(regions.size(), "region"),
                  arm.network->how == "real" || arm.simulated ? "" : ", emulated on one machine");
  return text;
}

}  // namespace

void place_arms(Comparison& of) {
  std::vector<ArmResult>& arms = of.results.arms;
  for (size_t i = 0; i < arms.size(); ++i) {
    ArmResult& arm = arms[i];
    size_t done = 0, simulated = 0;
    for (size_t k = 0; k < of.runs[i].size(); ++k) {
      const RunResult& run = of.results.runs[of.places[i][k]];
      if (arm.on.name.empty()) arm.on = run.network;
      if (!of.runs[i][k]->done()) continue;
      ++done;
      simulated += run.simulated ? 1 : 0;
      if (arm.network || !of.runs[i][k]->files->record->network) continue;
      arm.network = of.runs[i][k]->files->record->network;
      keep_used_links(*arm.network);
    }
    arm.simulated = done > 0 && simulated == done;
  }
  const bool all = std::all_of(arms.begin(), arms.end(), [](const ArmResult& arm) { return arm.simulated; });
  for (ArmResult& arm : arms) {
    if (arm.simulated && !all) arm.family = "simulated";  // beside measured ones it must not look like them
  }
}

bool same_network(const ArmResult& arm, const ArmResult& base) {
  return base.workers == 1 || arm.on == base.on;
}

std::vector<NetworkName> networks_in(const std::vector<const ArmResult*>& arms) {
  std::vector<NetworkName> found;
  for (const ArmResult* arm : arms) {
    if (arm->on.name.empty() || arm->workers == 1) continue;
    if (std::find(found.begin(), found.end(), arm->on) == found.end()) found.push_back(arm->on);
  }
  return found;
}

void note_networks(Comparison& of) {
  std::vector<std::string> networks, simulated;
  for (const ArmResult& arm : of.results.arms) {
    if (arm.simulated) simulated.push_back(arm.name);
    if (arm.on.name.empty() || arm.workers == 1) continue;
    if (std::string text = told(arm); std::find(networks.begin(), networks.end(), text) == networks.end())
      networks.push_back(std::move(text));
  }
  if (!networks.empty()) {
    of.results.notes.push_back(
        {.code = "network",
         .text = networks.size() == 1
                     ? fmt::format("Workers sat on the network {}.", networks[0])
                     : fmt::format("Workers sat on different networks: {}. Speeds are compared within one, "
                                   "and with one worker, which needs none.",
                                   some_of(networks)),
         .warning = false});
  }
  if (!simulated.empty()) {
    of.results.notes.push_back(
        {.code = "simulated",
         .text = fmt::format("Simulated, so that nothing was trained or timed: {}.",
                             simulated.size() == of.results.arms.size() ? "all arms" : some_of(simulated)),
         .warning = false});
  }
}

}  // namespace syncopate::report
