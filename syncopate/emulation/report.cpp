#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/lab.h"

namespace syncopate::emulation {

nlohmann::json to_json(const LabReport& report) {
  nlohmann::json links = nlohmann::json::array();
  for (const LabReport::LinkUse& link : report.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"bytes", link.bytes},
                     {"dropped", link.dropped},
                     {"busy_seconds", link.busy_seconds}});
  }
  return {{"how", report.how},
          {"congestion_control", report.congestion_control},
          {"seconds", report.seconds},
          {"late_ms_p50", report.late_ms_p50},
          {"late_ms_p99", report.late_ms_p99},
          {"late_ms_max", report.late_ms_max},
          {"late_share", report.late_share},
          {"trustworthy", report.trustworthy},
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
  for (const nlohmann::json& link : json.at("links")) {
    report.links.push_back({.from = link.at("from"),
                            .to = link.at("to"),
                            .bytes = link.at("bytes"),
                            .dropped = link.at("dropped"),
                            .busy_seconds = link.at("busy_seconds")});
  }
  return report;
}

LabReport read_report(const std::filesystem::path& file) {
  try {
    return report_from_json(nlohmann::json::parse(read_file(file, "lab report")));
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{} is not a lab's report: {}", file.string(), error.what());
  }
}

}  // namespace syncopate::emulation
