#include "syncopate/report/results.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

/// An empty text or a count of 0 that means "not known".
Json known_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json known_or_null(int64_t count) { return count > 0 ? Json(count) : Json(); }

/// Points of curves, to six digits: a screen shows three, and files with ten thousand runs stay small.
Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) {
      list.push_back(number_or_null(value));
      continue;
    }
    const double digits = 5 - std::floor(std::log10(std::abs(value)));
    const double scale = std::pow(10.0, std::abs(digits));
    list.push_back(digits >= 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale);
  }
  return list;
}

Json to_json(const Estimate& e) {
  Json values = Json::array();
  for (const double value : e.values) values.push_back(number_or_null(value));
  return {{"values", values},
          {"mean", number_or_null(e.mean)},
          {"sd", number_or_null(e.sd)},
          {"low", number_or_null(e.low)},
          {"high", number_or_null(e.high)},
          {"n", e.n}};
}

Json estimate_or_null(const Estimate& e) { return e.known() ? to_json(e) : Json(); }

Json to_json(const Difference& d) {
  return {{"mean", number_or_null(d.mean)},
          {"low", number_or_null(d.low)},
          {"high", number_or_null(d.high)},
          {"sd", number_or_null(d.sd)},
          {"n", d.n},
          {"decided", d.decided},
          {"same", d.same},
          {"better", d.better ? Json(*d.better) : Json()},
          {"seeds_needed", d.seeds_needed ? Json(*d.seeds_needed) : Json()},
          {"against", d.against}};
}

Json to_json(const Settings& settings) {
  Json json = Json::object();
  for (const auto& [name, value] : settings) json[name] = value;
  return json;
}

Json to_json(const Parts& p) {
  return {{"data", number_or_null(p.data)},         {"forward", number_or_null(p.forward)},
          {"backward", number_or_null(p.backward)}, {"compute", number_or_null(p.compute)},
          {"exchange", number_or_null(p.exchange)}, {"optimizer", number_or_null(p.optimizer)},
          {"hidden", number_or_null(p.hidden)}};
}

Json to_json(const Bytes& b) {
  return {{"per_step", number_or_null(b.per_step)},     {"gradients", number_or_null(b.gradients)},
          {"parameters", number_or_null(b.parameters)}, {"activations", number_or_null(b.activations)},
          {"control", number_or_null(b.control)},       {"total_gib", number_or_null(b.total_gib)}};
}

Json to_json(const Tuning& t) {
  Json values = Json::array();
  for (const Tuning::Value& each : t.values)
    values.push_back({{"value", number_or_null(each.value)}, {"mean", number_or_null(each.mean)}});
  return {{"setting", t.setting},
          {"best", number_or_null(t.best)},
          {"edge", known_or_null(t.edge)},
          {"values", values}};
}

Json to_json(const Progress& p) {
  Json losses, updates;
  if (!p.losses_by_worker.empty()) losses = numbers(p.losses_by_worker);
  if (!p.updates_by_worker.empty()) updates = p.updates_by_worker;
  return {{"step", p.step},
          {"of", known_or_null(p.of)},
          {"seconds_left", number_or_null(p.seconds_left)},
          {"losses_by_worker", losses},
          {"updates_by_worker", updates},
          {"bytes_per_s", number_or_null(p.bytes_per_s)}};
}

Json to_json(const Measure& m) {
  return {{"name", m.name},
          {"label", m.label},
          {"percent", m.percent},
          {"higher_is_better", m.higher_is_better},
          {"split", m.split}};
}

Json to_json(const Predicted& p) {
  return {{"ms", number_or_null(p.ms)},
          {"compute_ms", number_or_null(p.compute_ms)},
          {"exchange_ms", number_or_null(p.exchange_ms)},
          {"hidden_ms", number_or_null(p.hidden_ms)},
          {"bytes_per_step", number_or_null(p.bytes_per_step)},
          {"from", p.from},
          {"error", number_or_null(p.error)}};
}

Json to_json(const record::PipelineRecord& pipeline, const std::vector<record::StageRecord>& stages) {
  Json json = record::to_json(pipeline);
  json["stages"] = Json::array();
  for (const record::StageRecord& stage : stages) {
    Json each = record::to_json(stage);
    for (auto& value : each) {
      if (value.is_number_float()) value = number_or_null(value.get<double>());
    }
    json["stages"].push_back(std::move(each));
  }
  return json;
}

/// Without NaN, which a record may hold and JSON may not.
Json network_json(const record::NetworkRecord& network) {
  Json json = record::to_json(network);
  json["late_ms_p99"] = number_or_null(network.late_ms_p99);
  for (size_t i = 0; i < network.links.size(); ++i) {
    json["links"][i]["bytes"] = number_or_null(network.links[i].bytes);
    json["links"][i]["busy"] = number_or_null(network.links[i].busy);
  }
  return json;
}

Json to_json(const PredictionPoint& p) {
  const auto step = [](const PredictionPoint::Step& s) {
    return Json{{"ms", number_or_null(s.ms)},
                {"compute_ms", number_or_null(s.compute_ms)},
                {"exchange_ms", number_or_null(s.exchange_ms)},
                {"hidden_ms", number_or_null(s.hidden_ms)}};
  };
  return {{"series", p.series},
          {"name", p.name},
          {"family", p.family},
          {"network", known_or_null(p.network)},
          {"arm", known_or_null(p.arm)},
          {"predicted", step(p.predicted)},
          {"measured", step(p.measured)},
          {"error", number_or_null(p.error)},
          {"why_not", known_or_null(p.why_not)}};
}

Json to_json(const PredictionSummary& s) {
  return {{"series", s.series},           {"n", s.n},
          {"left_out", s.left_out},       {"within_10", s.within_10},
          {"within_20", s.within_20},     {"median", number_or_null(s.median)},
          {"p90", number_or_null(s.p90)}, {"text", prediction_text(s)}};
}

/// Its JSON, with the name of its file.
Json to_json(const Attachment& a) {
  Json json = Json::parse(a.json);
  json["file"] = a.file;
  return json;
}

Json to_json(const ArmResult& a) {
  Json checks = Json::array(), flags = Json::array();
  for (const Check& check : a.checks) {
    checks.push_back({{"code", check.code},
                      {"ok", check.ok},
                      {"text", check.text},
                      {"differs_by_nature", check.differs_by_nature},
                      {"known", check.known}});
  }
  for (const Flag& flag : a.flags) flags.push_back({{"code", flag.code}, {"text", flag.text}});
  Json json{{"id", a.id},
            {"name", a.name},
            {"row", a.row},
            {"kind", a.kind},
            {"group", a.group},
            {"family", a.family},
            {"strategy", a.strategy},
            {"codec", a.codec},
            {"workers", a.workers},
            {"replicas", a.replicas()},
            {"axes", to_json(a.axes)},
            {"settings", to_json(a.settings)},
            {"state", a.state},
            {"runs", a.runs},
            {"checks", checks},
            {"excluded", a.excluded},
            {"flags", flags},
            {"quality", estimate_or_null(a.quality)},
            {"difference", a.difference ? to_json(*a.difference) : Json()},
            {"quality_at_time", nullptr},
            {"time_to_target", nullptr},
            {"speedup", estimate_or_null(a.speedup)},
            {"speed_against", known_or_null(a.speed_against)},
            {"efficiency", number_or_null(a.efficiency)},
            {"words", a.words},
            {"ms", estimate_or_null(a.ms)},
            {"ms_p50", number_or_null(a.ms_p50)},
            {"ms_p95", number_or_null(a.ms_p95)},
            {"parts", to_json(a.parts)},
            {"examples_per_s", estimate_or_null(a.examples_per_s)},
            {"train_seconds", estimate_or_null(a.train_seconds)},
            {"seconds_per_epoch", number_or_null(a.seconds_per_epoch)},
            {"examples", number_or_null(a.examples)},
            {"updates", number_or_null(a.updates)},
            {"global_batch", number_or_null(a.global_batch)},
            {"bytes", to_json(a.bytes)},
            {"bandwidth", nullptr},
            {"peak_memory", number_or_null(a.peak_memory)},
            {"noise_scale", number_or_null(a.noise_scale)},
            {"staleness", a.staleness.empty() ? Json() : Json(a.staleness)},
            {"outside_load", number_or_null(a.outside_load)},
            {"worker_spread", nullptr},
            {"price", nullptr},
            {"network", a.network ? network_json(*a.network) : Json()},
            {"network_name", known_or_null(a.on.name)},
            {"network_scale", a.on.name.empty() ? Json() : number_or_null(a.on.scale)},
            {"predicted", a.predicted ? to_json(*a.predicted) : Json()},
            {"pipeline", a.pipeline ? to_json(*a.pipeline, a.stage_work) : Json()},
            {"simulated", a.simulated},
            {"pareto", a.pareto},
            {"tuning", a.tuning ? to_json(*a.tuning) : Json()}};
  json["measure"] = to_json(a.measure);
  if (a.quality_at_time) {
    json["quality_at_time"] = {{"seconds", number_or_null(a.quality_at_time->seconds)},
                               {"estimate", to_json(a.quality_at_time->quality)}};
  }
  if (a.time_to_target) {
    json["time_to_target"] = {{"estimate", to_json(a.time_to_target->seconds)},
                              {"reached", a.time_to_target->reached},
                              {"of", a.time_to_target->of}};
  }
  if (a.bandwidth) {
    json["bandwidth"] = {{"algorithm_gbit", number_or_null(a.bandwidth->algorithm_gbit)},
                         {"bus_gbit", number_or_null(a.bandwidth->bus_gbit)},
                         {"link_gbit", number_or_null(a.bandwidth->link_gbit)},
                         {"utilisation", number_or_null(a.bandwidth->utilisation)}};
  }
  if (std::isfinite(a.worker_low))
    json["worker_spread"] = {{"low", number_or_null(a.worker_low)}, {"high", number_or_null(a.worker_high)}};
  if (a.price) json["price"] = {{"value", number_or_null(a.price->value)}, {"currency", a.price->currency}};
  return json;
}

Json to_json(const RunResult& r) {
  Json measures = Json::object();
  for (const auto& [name, value] : r.measures) measures[name] = number_or_null(value);
  Json settings = to_json(r.settings);
  settings["train.seed"] = std::to_string(r.seed);
  Json json{{"id", r.id},
            {"arm", r.arm},
            {"seed", r.seed},
            {"kind", r.kind},
            {"folder", r.folder},
            {"state", r.state},
            {"message", known_or_null(r.message)},
            {"settings", settings},
            {"quality", number_or_null(r.quality)},
            {"measures", measures},
            {"loss", number_or_null(r.loss)},
            {"speedup", number_or_null(r.speedup)},
            {"ms", number_or_null(r.ms)},
            {"ms_p50", number_or_null(r.ms_p50)},
            {"ms_p95", number_or_null(r.ms_p95)},
            {"examples_per_s", number_or_null(r.examples_per_s)},
            {"train_seconds", number_or_null(r.train_seconds)},
            {"examples", r.examples},
            {"steps", r.steps},
            {"bytes_per_step", number_or_null(r.bytes_per_step)},
            {"outside_load", number_or_null(r.outside_load)},
            {"peak_memory", number_or_null(r.peak_memory)},
            {"collapsed", r.collapsed},
            {"reused", r.reused},
            {"parts", to_json(r.parts)},
            {"network_name", known_or_null(r.network.name)},
            {"network_scale", r.network.name.empty() ? Json() : number_or_null(r.network.scale)},
            {"predicted", r.predicted ? to_json(*r.predicted) : Json()},
            {"simulated", r.simulated},
            {"command", known_or_null(r.command)},
            {"host", known_or_null(r.host)},
            {"cpu", known_or_null(r.cpu)},
            {"cores", known_or_null(r.cores)},
            {"threads", known_or_null(r.threads)},
            {"date", known_or_null(r.date)},
            {"version", known_or_null(r.version)},
            {"commit", known_or_null(r.commit)},
            {"start_hash", known_or_null(r.start_hash)},
            {"data_hash", known_or_null(r.data_hash)}};
  json["curve"] = {{"examples", numbers(r.curve.examples)},
                   {"seconds", numbers(r.curve.seconds)},
                   {"loss", numbers(r.curve.loss)}};
  json["evals"] = {{"examples", numbers(r.evals.examples)},
                   {"seconds", numbers(r.evals.seconds)},
                   {"quality", numbers(r.evals.quality)},
                   {"split", r.evals.split}};
  json["progress"] = r.progress ? to_json(*r.progress) : Json();
  return json;
}

Json to_json(const std::vector<ScalingPoint>& points) {
  Json list = Json::array();
  for (const ScalingPoint& point : points) {
    list.push_back({{"group", point.group},
                    {"arm", point.arm},
                    {"workers", point.workers},
                    {"examples_per_s", number_or_null(point.examples_per_s)},
                    {"speedup", number_or_null(point.speedup)}});
  }
  return list;
}

}  // namespace

bool ArmResult::has_flag(std::string_view code) const {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.code == code; });
}

double ArmResult::ideal_speedup(const ArmResult& base) const {
  const auto ratio = [](int64_t a, int64_t b) {
    return static_cast<double>(std::max<int64_t>(1, a)) / static_cast<double>(std::max<int64_t>(1, b));
  };
  return stages == base.stages ? ratio(replicas(), base.replicas()) : ratio(workers, base.workers);
}

bool ArmResult::timed_fairly() const {
  return !has_flag("side-by-side") && !has_flag("other-version") && !has_flag("other-host") &&
         !has_flag("late");
}

bool ArmResult::timing_counts() const { return timed_fairly() && !has_flag("busy"); }

const ArmResult* Results::arm(std::string_view id) const {
  const auto found =
      std::find_if(arms.begin(), arms.end(), [&](const ArmResult& arm) { return arm.id == id; });
  return found == arms.end() ? nullptr : &*found;
}

Json to_json(const Results& r) {
  Json notes = Json::array(), arms = Json::array(), runs = Json::array();
  for (const Note& note : r.notes) {
    notes.push_back(
        {{"code", note.code}, {"text", note.text}, {"severity", note.warning ? "warning" : "info"}});
  }
  for (const ArmResult& arm : r.arms) arms.push_back(to_json(arm));
  for (const RunResult& run : r.runs) runs.push_back(to_json(run));
  Json json{{"format", "syncopate-results-1"},
            {"title", r.title},
            {"file", r.file},
            {"made", r.made},
            {"program", {{"version", r.version}, {"commit", r.commit}}},
            {"state", r.state},
            {"measure", to_json(r.measure)},
            {"target", nullptr},
            {"baseline", known_or_null(r.baseline)},
            {"advice",
             {{"verdict", r.advice.verdict},
              {"sentence", r.advice.sentence},
              {"paragraph", r.advice.paragraph},
              {"arm", known_or_null(r.advice.arm)},
              {"rivals", r.advice.rivals}}},
            {"notes", notes},
            {"common", to_json(r.common)},
            {"varies", r.varies},
            {"axes", r.axes}};
  if (r.target) json["target"] = {{"measure", r.target->measure}, {"value", number_or_null(r.target->value)}};
  json["arms"] = std::move(arms);
  json["runs"] = std::move(runs);
  json["scaling"] = {{"strong", to_json(r.strong)}, {"weak", to_json(r.weak)}};
  Json points = Json::array(), errors = Json::array(), placements = Json::array();
  for (const PredictionPoint& point : r.predictions) points.push_back(to_json(point));
  for (const PredictionSummary& each : r.prediction_errors) errors.push_back(to_json(each));
  for (const Attachment& placement : r.placements) placements.push_back(to_json(placement));
  json["predictions"] = {{"points", std::move(points)}, {"errors", std::move(errors)}};
  json["placements"] = std::move(placements);
  json["advice_check"] = r.advice_check ? to_json(*r.advice_check) : Json();
  json["omitted"] = {{"curves", r.omitted_curves}};
  return json;
}

std::string json_text(const Results& results) {
  return to_json(results).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syncopate::report
