#include "syncopate/lab/sweep_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/file.h"
#include "syncopate/base/version.h"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "syncopate-sweep-1";

Json axes_to_json(const SweepRun& run) {
  Json axes = Json::object();
  for (const Setting& axis : run.axes) axes[axis.name] = axis.value;
  return axes;
}

Json run_to_json(const Experiment& experiment, const SweepRun& run) {
  Json control_of, also = Json::array();
  if (run.kind == RunKind::kControl) {
    for (const size_t arm : experiment.arms[run.arm].control_of) {
      if (control_of.is_null()) {
        control_of = fmt::format("a{}", arm);
      } else {
        also.push_back(fmt::format("a{}", arm));
      }
    }
  }
  Json json{{"id", run.id},
            {"kind", name_of(run.kind)},
            {"arm", run.arm_id()},
            {"row", run.row},
            {"name", run.name},
            {"axes", axes_to_json(run)},
            {"seed", run.seed()},
            {"lr", run.settled ? Json(run.spec.optim.lr) : Json()},
            {"control_of", control_of},
            {"folder", run.folder},
            {"state", name_of(run.state)},
            {"reused", run.reused},
            {"exit_code", run.exit_code},
            {"message", run.message},
            {"other_version", run.other_version},
            {"alone", run.alone}};
  if (!also.empty()) json["also_control_of"] = also;
  if (run.same_as) json["same_as"] = fmt::format("r{}", *run.same_as);
  return json;
}

Json tuning_to_json(const Tuning& tuning) {
  Json values = Json::array();
  for (const Trial& trial : tuning.trials) {
    Json scores = Json::array();
    for (const auto& score : trial.scores) scores.push_back(score ? Json(*score) : Json());
    values.push_back(
        {{"value", trial.value}, {"scores", scores}, {"seeds", trial.seeds}, {"refined", trial.refined}});
  }
  return {{"arm", fmt::format("a{}", tuning.arm)},
          {"setting", tuning.setting},
          {"values", values},
          {"best", tuning.best ? Json(*tuning.best) : Json()},
          {"edge", tuning.edge.empty() ? Json() : Json(tuning.edge)},
          {"measure", tuning.measure.empty() ? Json() : Json(tuning.measure)},
          {"failed", tuning.failed}};
}

}  // namespace

std::string sweep_text(const Experiment& experiment, const Plan& plan, const SweepHead& head) {
  Json runs = Json::array(), tunings = Json::array();
  for (const SweepRun& run : plan.runs) runs.push_back(run_to_json(experiment, run));
  for (const Tuning& tuning : plan.tunings) tunings.push_back(tuning_to_json(tuning));
  Json target, price;
  if (experiment.target)
    target = {{"measure", experiment.target->measure}, {"value", experiment.target->value}};
  if (experiment.worker_hour)
    price = {{"worker_hour", *experiment.worker_hour}, {"currency", experiment.currency}};
  const Json sweep{{"format", kFormat},
                   {"title", experiment.title},
                   {"file", experiment.file.string()},
                   {"cost", experiment.cost},
                   {"program", {{"version", program_version()}, {"commit", program_commit()}}},
                   {"began", head.began},
                   {"state", head.state},
                   {"baseline", experiment.baseline ? Json(*experiment.baseline) : Json()},
                   {"target", target},
                   {"differs", experiment.differs},
                   {"price", price},
                   {"link_gbit", experiment.link_gbit ? Json(*experiment.link_gbit) : Json()},
                   {"axes", experiment.axes},
                   {"runs", runs},
                   {"tuning", tunings}};
  // A file's name may be anything but UTF-8.
  return sweep.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::map<std::string, FormerRun> former_runs(const std::filesystem::path& out) {
  std::map<std::string, FormerRun> former;
  const std::filesystem::path file = out / "sweep.json";
  if (!std::filesystem::exists(file)) return former;
  try {
    const Json sweep = Json::parse(read_file(file, "sweep"));
    if (sweep.at("format") != kFormat) return former;
    const std::string version = sweep.at("program").at("version"), commit = sweep.at("program").at("commit");
    for (const Json& run : sweep.at("runs")) {
      former[run.at("folder")] = {.state = run.at("state"),
                                  .message = run.at("message"),
                                  .exit_code = run.at("exit_code"),
                                  .alone = run.at("alone"),
                                  .version = version,
                                  .commit = commit};
    }
  } catch (const nlohmann::json::exception&) {  // of another program or half a disk: begin anew
    former.clear();
  }
  former.erase("");
  return former;
}

}  // namespace syncopate::lab
