#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "syncopate/emulation/control.h"
#include "syncopate/emulation/lab.h"
#include "syncopate/emulation/lateness.h"

namespace syncopate::emulation {

nlohmann::json to_json(const LabReport& report) {
  nlohmann::json links = nlohmann::json::array();
  for (const LabReport::LinkUse& link : report.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"bytes", link.bytes},
                     {"dropped", link.dropped},
                     {"busy_seconds", link.busy_seconds},
                     {"latency_ms", link.latency_ms},
                     {"gbit", link.gbit}});
  }
  return {{"how", report.how},
          {"congestion_control", report.congestion_control},
          {"seconds", report.seconds},
          {"late_ms_p50", report.late_ms_p50},
          {"late_ms_p99", report.late_ms_p99},
          {"late_ms_max", report.late_ms_max},
          {"late_share", report.late_share},
          {"trustworthy", report.trustworthy},
          {"changed", report.changed},
          {"late", report.late},
          {"taken", report.taken},
          {"missed", report.missed},
          {"lateness", report.lateness},
          {"links", links}};
}

LabReport report_from_json(const nlohmann::json& json) {
  LabReport report;
  report.how = json.at("how");
  report.congestion_control = json.at("congestion_control");
  report.seconds = json.at("seconds");
  report.late_ms_p50 = json.at("late_ms_p50");
  report.late_ms_p99 = json.at("late_ms_p99");
  report.late_ms_max = json.at("late_ms_max");
  report.late_share = json.at("late_share");
  report.trustworthy = json.at("trustworthy");
  report.changed = json.at("changed");
  report.late = json.at("late");
  report.taken = json.at("taken");
  report.missed = json.at("missed");
  report.lateness = json.at("lateness").get<std::vector<double>>();
  for (const nlohmann::json& link : json.at("links")) {
    report.links.push_back({.from = link.at("from"),
                            .to = link.at("to"),
                            .bytes = link.at("bytes"),
                            .dropped = link.at("dropped"),
                            .busy_seconds = link.at("busy_seconds"),
                            .latency_ms = link.at("latency_ms"),
                            .gbit = link.at("gbit")});
  }
  return report;
}

void judge(LabReport& report) {
  constexpr double kLateShare = 0.01, kMissedShare = 0.001;
  const double delivered = std::accumulate(report.lateness.begin(), report.lateness.end(), 0.0);
  report.late_ms_p50 = std::min(late_ms(report.lateness, 0.5), report.late_ms_max);
  report.late_ms_p99 = std::min(late_ms(report.lateness, 0.99), report.late_ms_max);
  report.late_share = delivered > 0 ? report.late / delivered : 0;
  report.trustworthy =
      report.late_share <= kLateShare && report.missed <= kMissedShare * (report.taken + report.missed);
}

LabReport between(const LabReport& before, const LabReport& after) {
  LabReport report = after;
  report.seconds -= before.seconds;
  report.changed -= before.changed;
  report.late -= before.late;
  report.taken -= before.taken;
  report.missed -= before.missed;
  for (size_t k = 0; k < std::min(before.lateness.size(), report.lateness.size()); ++k)
    report.lateness[k] -= before.lateness[k];
  for (LabReport::LinkUse& link : report.links) {
    const auto then = std::find_if(before.links.begin(), before.links.end(), [&](const auto& each) {
      return each.from == link.from && each.to == link.to;
    });
    if (then == before.links.end()) continue;
    link.bytes -= then->bytes;
    link.dropped -= then->dropped;
    link.busy_seconds -= then->busy_seconds;
  }
  judge(report);
  return report;
}

}  // namespace syncopate::emulation
