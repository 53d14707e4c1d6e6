// Where arms' workers sat, and which arms nobody trained.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "syncopate/record/stages.h"
#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// The links that carried something. Where nobody counted, all of them.
void keep_used_links(record::NetworkRecord& network) {
  const auto counted = [](const record::NetworkRecord::Link& link) { return std::isfinite(link.bytes); };
  if (std::none_of(network.links.begin(), network.links.end(), counted)) return;
  std::erase_if(network.links, [](const record::NetworkRecord::Link& link) { return !(link.bytes > 0); });
}

/// Stage by stage, over those runs that were cut like the first.
std::vector<record::StageRecord> mean_over(const std::vector<std::vector<record::StageRecord>>& runs) {
  std::vector<record::StageRecord> means;
  for (size_t stage = 0; !runs.empty() && stage < runs.front().size(); ++stage) {
    std::vector<record::StageRecord> alike;
    for (const auto& run : runs) {
      if (run.size() == runs.front().size() && run[stage].blocks == runs.front()[stage].blocks)
        alike.push_back(run[stage]);
    }
    means.push_back(record::mean_of(alike));
  }
  return means;
}

/// "8 hosts", "2 to 8 hosts".
std::string span_text(const std::set<size_t>& counts, const char* what) {
  const size_t least = *counts.begin(), most = *counts.rbegin();
  return least == most ? fmt::format("{} {}{}", most, what, most == 1 ? "" : "s")
                       : fmt::format("{} to {} {}s", least, most, what);
}

/// "worldwide ÷ 100 (2 to 8 hosts in 2 to 8 regions, emulated on one machine)".
std::string told(const NetworkName& name, const std::vector<ArmResult>& arms) {
  std::set<size_t> hosts, regions;
  bool emulated = false;
  for (const ArmResult& arm : arms) {
    if (arm.on != name || arm.workers == 1 || !arm.network) continue;
    std::set<std::string> here;
    for (const record::NetworkRecord::Host& host : arm.network->hosts) here.insert(host.region);
    hosts.insert(arm.network->hosts.size());
    regions.insert(here.size());
    emulated = emulated || (arm.network->how != "real" && !arm.simulated);
  }
  if (hosts.empty()) return network_text(name);
  return fmt::format("{} ({} in {}{})", network_text(name), span_text(hosts, "host"),
                     span_text(regions, "region"), emulated ? ", emulated on one machine" : "");
}

}  // namespace

void place_arms(Comparison& of) {
  std::vector<ArmResult>& arms = of.results.arms;
  for (size_t i = 0; i < arms.size(); ++i) {
    ArmResult& arm = arms[i];
    size_t done = 0, simulated = 0;
    std::vector<std::vector<record::StageRecord>> in_stages;
    for (size_t k = 0; k < of.runs[i].size(); ++k) {
      const RunResult& run = of.results.runs[of.places[i][k]];
      if (arm.on.name.empty()) arm.on = run.network;
      if (!of.runs[i][k]->done()) continue;
      ++done;
      simulated += run.simulated ? 1 : 0;
      const record::RunRecord& record = *of.runs[i][k]->files->record;
      if (!arm.pipeline) arm.pipeline = record.pipeline;
      if (!record.stages.empty()) in_stages.push_back(record.stages);
      if (arm.network || !record.network) continue;
      arm.network = record.network;
      keep_used_links(*arm.network);
    }
    arm.simulated = done > 0 && simulated == done;
    arm.stage_work = mean_over(in_stages);
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
  std::vector<const ArmResult*> arms;
  for (const ArmResult& arm : of.results.arms) {
    arms.push_back(&arm);
    if (arm.simulated) simulated.push_back(arm.name);
  }
  for (const NetworkName& name : networks_in(arms)) networks.push_back(told(name, of.results.arms));
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
