#include "syncopate/report/reading/plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

double number(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? kUnknown : found->get<double>();
}

std::string text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? std::string() : found->get<std::string>();
}

bool truth(const Json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? otherwise : found->get<bool>();
}

std::vector<std::string> texts(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return {};
  return found->get<std::vector<std::string>>();
}

RunData run_of(const fs::path& folder, const Json& json) {
  RunData run;
  run.id = json.at("id");
  run.kind = json.value("kind", "row");
  run.arm = json.at("arm");
  run.row = text(json, "row");
  run.name = text(json, "name");
  run.control_of = text(json, "control_of");
  run.folder = json.at("folder");
  run.state = json.value("state", "planned");
  run.message = text(json, "message");
  if (const auto axes = json.find("axes"); axes != json.end() && axes->is_object()) {
    for (const auto& axis : axes->items()) run.axes.emplace_back(axis.key(), axis.value());
  }
  run.seed = json.value("seed", int64_t{0});
  run.lr = number(json, "lr");
  run.reused = truth(json, "reused", false);
  run.other_version = truth(json, "other_version", false);
  run.alone = truth(json, "alone", true);
  run.path = folder / run.folder;
  return run;
}

TuningData tuning_of(const Json& json) {
  TuningData data{.arm = json.at("arm")};
  data.tuning.setting = json.value("setting", "optim.lr");
  data.tuning.best = number(json, "best");
  data.tuning.edge = text(json, "edge");
  for (const Json& value : json.value("values", Json::array())) {
    std::vector<double> scores;
    for (const Json& score : value.value("scores", Json::array()))
      scores.push_back(score.is_null() ? kUnknown : score.get<double>());
    data.tuning.values.push_back({number(value, "value"), estimate(scores).mean});
  }
  std::sort(data.tuning.values.begin(), data.tuning.values.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  return data;
}

SweepData sweep_of(const fs::path& folder, const Json& json) {
  if (json.value("format", "") != "syncopate-sweep-1")
    throw DataError("its format is not syncopate-sweep-1: it was made by another version of the program");
  SweepData sweep;
  sweep.planned = true;
  sweep.title = text(json, "title");
  sweep.file = text(json, "file");
  if (const auto program = json.find("program"); program != json.end() && program->is_object()) {
    sweep.version = text(*program, "version");
    sweep.commit = text(*program, "commit");
  }
  sweep.state = json.value("state", "finished");
  sweep.baseline = text(json, "baseline");
  if (const auto target = json.find("target"); target != json.end() && target->is_object())
    sweep.target = Target{.measure = target->at("measure"), .value = target->at("value")};
  sweep.differs = texts(json, "differs");
  sweep.axes = texts(json, "axes");
  if (const auto price = json.find("price"); price != json.end() && price->is_object()) {
    sweep.worker_hour = number(*price, "worker_hour");
    sweep.currency = text(*price, "currency");
  }
  sweep.link_gbit = number(json, "link_gbit");
  std::set<std::string> folders, twins;
  std::map<std::string, std::set<std::string>> arms;  // of a folder
  for (const Json& each : json.at("runs")) {
    RunData run = run_of(folder, each);
    // Arms that tuning made the same share a run, and say so.
    const bool shared = !text(each, "same_as").empty() && arms[run.folder].insert(run.arm).second;
    arms[run.folder].insert(run.arm);
    if (folders.insert(run.folder).second || shared) {
      sweep.runs.push_back(std::move(run));
    } else {
      twins.insert(run.folder);
    }
  }
  if (!twins.empty()) {
    sweep.notes.push_back({.code = "twins",
                           .text = fmt::format("sweep.json names {} more than once: each run counts once",
                                               some_of({twins.begin(), twins.end()}))});
  }
  for (const Json& each : json.value("tuning", Json::array())) sweep.tunings.push_back(tuning_of(each));
  return sweep;
}

}  // namespace

SweepData planned_sweep(const fs::path& folder, const std::string& text) {
  try {
    return sweep_of(folder, Json::parse(utf8(text)));
  } catch (const nlohmann::json::parse_error&) {
    throw DataError("it is not JSON");
  } catch (const nlohmann::json::exception& error) {
    throw DataError("a field is missing or of another kind");
  }
}

SweepData found_runs(const fs::path& folder) {
  SweepData found;
  found.title = utf8(fs::absolute(folder).lexically_normal().filename().string());
  if (found.title.empty())
    found.title = utf8(fs::absolute(folder).lexically_normal().parent_path().filename().string());
  std::vector<fs::path> paths;
  std::vector<std::string> foreign;
  if (fs::exists(folder / "spec.json")) {
    paths.push_back(folder);
  } else {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".") || !entry.is_directory(ignored)) continue;
      if (fs::exists(entry.path() / "spec.json", ignored)) {
        paths.push_back(entry.path());
      } else {
        foreign.push_back(utf8(name));
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  std::sort(foreign.begin(), foreign.end());
  if (!foreign.empty() && !paths.empty()) {
    found.notes.push_back(
        {.code = "foreign",
         .text = fmt::format("{} left out, without a spec.json: {}",
                             foreign.size() == 1 ? "a folder" : "folders", some_of(foreign)),
         .warning = false});
  }
  for (const fs::path& path : paths) {
    RunData run;
    run.id = fmt::format("r{}", found.runs.size());
    run.folder = path == folder ? "." : utf8(path.filename().string());
    run.path = path;
    run.state = "";  // as its files say
    found.runs.push_back(std::move(run));
  }
  return found;
}

}  // namespace syncopate::report
