#include "syncopate/record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "syncopate/record/stages.h"

namespace syncopate::record {

using Json = nlohmann::ordered_json;

namespace {

/// A number that may have been NaN.
double number(const Json& value) { return value.is_null() ? kNan : value.get<double>(); }

}  // namespace

std::string measure_for_people(const std::string& name, double value) {
  const std::string kind = name.ends_with("_coded") ? name.substr(0, name.size() - 6) : name;
  if (kind == "perplexity" || kind == "exact_match" || kind == "f1") return fmt::format("{:.2f}", value);
  if (kind == "loss") return fmt::format("{:.4f}", value);
  return fmt::format("{:.2f} %", 100 * value);
}

std::string main_measure(const EvalRecord& record) {
  for (const char* name : {"f1", "perplexity", "accuracy"}) {
    if (record.measures.contains(name)) return name;
  }
  return record.measures.empty() ? "" : record.measures.begin()->first;
}

bool better(const EvalRecord& a, const EvalRecord& b) {
  const std::string measure = main_measure(a);
  if (measure.empty() || !b.measures.contains(measure)) return a.loss < b.loss;
  const double ours = a.measures.at(measure), theirs = b.measures.at(measure);
  return measure == "perplexity" ? ours < theirs : ours > theirs;
}

Json to_json(const StepRecord& r) {
  return {{"step", r.step},
          {"loss", r.loss},
          {"lr", r.lr},
          {"examples", r.examples},
          {"ms", r.ms},
          {"compute_ms", r.compute_ms},
          {"forward_ms", r.forward_ms},
          {"backward_ms", r.backward_ms},
          {"optimizer_ms", r.optimizer_ms},
          {"exchange_ms", r.exchange_ms},
          {"hidden_ms", r.hidden_ms},
          {"data_ms", r.data_ms},
          {"bytes_sent", r.bytes_sent},
          {"grad_norm", r.grad_norm}};
}

Json to_json(const EvalRecord& r) {
  Json json{{"step", r.step}, {"split", r.split}, {"loss", r.loss}};
  for (const auto& [name, value] : r.measures) json[name] = value;
  json["examples"] = r.examples;
  json["seconds"] = r.seconds;
  if (!r.model.empty()) json["model"] = r.model;
  if (!r.confusion.empty()) json["confusion"] = r.confusion;
  return json;
}

Json to_json(const EpochRecord& r) {
  return {{"epoch", r.epoch},
          {"seconds", r.seconds},
          {"loss", r.loss},
          {"eval", r.eval ? to_json(*r.eval) : Json()}};
}

Json to_json(const Provenance& p) {
  return {{"version", p.version}, {"commit", p.commit}, {"date", p.date}, {"host", p.host},
          {"command", p.command}, {"seed", p.seed},     {"lr", p.lr}};
}

Json to_json(const Collective& c) {
  return {{"name", c.name}, {"calls", c.calls}, {"bytes", c.bytes}, {"seconds", c.seconds}};
}

Json to_json(const NetworkRecord& n) {
  Json hosts = Json::array(), links = Json::array();
  for (const NetworkRecord::Host& host : n.hosts)
    hosts.push_back({{"name", host.name}, {"region", host.region}});
  for (const NetworkRecord::Link& link : n.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"latency_ms", link.latency_ms},
                     {"gbit", link.gbit},
                     {"bytes", link.bytes},
                     {"busy", link.busy}});
  }
  return {{"name", n.name},
          {"scale", n.scale},
          {"how", n.how},
          {"congestion_control", n.congestion_control},
          {"late_ms_p99", n.late_ms_p99},
          {"trustworthy", n.trustworthy},
          {"hosts", hosts},
          {"seats", n.seats},
          {"links", links}};
}

Json to_json(const PredictionRecord& p) {
  return {{"ms", p.ms},
          {"compute_ms", p.compute_ms},
          {"exchange_ms", p.exchange_ms},
          {"hidden_ms", p.hidden_ms},
          {"bytes_sent_per_step", p.bytes_sent_per_step},
          {"from", p.from}};
}

namespace {

struct StageNumber {
  const char* name;
  double StageRecord::*value;
};
constexpr StageNumber kStageNumbers[] = {
    {"ms", &StageRecord::ms},
    {"forward_ms", &StageRecord::forward_ms},
    {"backward_ms", &StageRecord::backward_ms},
    {"coding_ms", &StageRecord::coding_ms},
    {"waiting_forward_ms", &StageRecord::waiting_forward_ms},
    {"waiting_backward_ms", &StageRecord::waiting_backward_ms},
    {"sending_ms", &StageRecord::sending_ms},
    {"exchange_ms", &StageRecord::exchange_ms},
    {"optimizer_ms", &StageRecord::optimizer_ms},
    {"data_ms", &StageRecord::data_ms},
    {"other_ms", &StageRecord::other_ms},
    {"bubble", &StageRecord::bubble},
    {"bytes_forward", &StageRecord::bytes_forward},
    {"bytes_backward", &StageRecord::bytes_backward},
    {"bytes_gradients", &StageRecord::bytes_gradients},
    {"bytes_tied", &StageRecord::bytes_tied},
    {"bits_forward", &StageRecord::bits_forward},
    {"bits_backward", &StageRecord::bits_backward},
    {"error_forward", &StageRecord::error_forward},
    {"error_backward", &StageRecord::error_backward},
};

}  // namespace

Json to_json(const StageRecord& s) {
  Json json{{"ranks", s.ranks}, {"blocks", s.blocks}};
  for (const auto& [name, value] : kStageNumbers) json[name] = s.*value;
  return json;
}

Json to_json(const PipelineRecord& p) {
  return {{"replicas", p.replicas},
          {"schedule", p.schedule},
          {"micro_batches", p.micro_batches},
          {"cut", p.cut},
          {"activation_codec", p.activation_codec},
          {"coded_evaluations", p.coded_evaluations}};
}

Json to_json(const RunRecord& r) {
  Json epochs = Json::array();
  for (const EpochRecord& epoch : r.epochs) {
    epochs.push_back(to_json(epoch));
    // It is long: once is enough, and evals.jsonl has each.
    if (epoch.eval) epochs.back()["eval"].erase("confusion");
  }
  Json json{{"task", r.task},
            {"model", r.model},
            {"init_from", r.init_from},
            {"strategy", r.strategy},
            {"codec", r.codec},
            {"device", r.device},
            {"precision", r.precision},
            {"skipped_steps", r.skipped_steps},
            {"workers", r.workers},
            {"steps", r.steps},
            {"ended", r.ended},
            {"examples", r.examples},
            {"global_batch", r.global_batch},
            {"ms_per_iteration", r.ms_per_iteration},
            {"ms_p50", r.ms_p50},
            {"ms_p95", r.ms_p95},
            {"compute_ms", r.compute_ms},
            {"forward_ms", r.forward_ms},
            {"backward_ms", r.backward_ms},
            {"optimizer_ms", r.optimizer_ms},
            {"exchange_ms", r.exchange_ms},
            {"hidden_ms", r.hidden_ms},
            {"data_ms", r.data_ms},
            {"examples_per_s", r.examples_per_s},
            {"bytes_sent_per_step", r.bytes_sent_per_step},
            {"bytes_by_kind", r.bytes_by_kind},
            {"collectives", Json::array()},
            {"train_loss", r.train_loss},
            {"train_seconds", r.train_seconds},
            {"epochs", epochs},
            {"eval", r.eval ? to_json(*r.eval) : Json()},
            {"keep", r.keep},
            {"kept_step", r.kept_step},
            {"run_dir", r.run_dir},
            {"data_hash", r.data_hash},
            {"start_hash", r.start_hash},
            {"test_hash", r.test_hash},
            {"cpu", r.cpu},
            {"cores", r.cores},
            {"threads", r.threads},
            {"outside_load", r.outside_load},
            {"peak_memory", r.peak_memory},
            {"noise_scale", r.noise_scale},
            {"provenance", to_json(r.provenance)}};
  for (const Collective& each : r.collectives) json["collectives"].push_back(to_json(each));
  for (const EvalRecord& each : r.worker_evals) {
    json["worker_evals"].push_back(to_json(each));
    json["worker_evals"].back().erase("confusion");
  }
  if (r.validation) {
    json["validation"] = to_json(*r.validation);
    json["validation"].erase("confusion");
  }
  if (r.network) json["network"] = to_json(*r.network);
  if (r.predicted) json["predicted"] = to_json(*r.predicted);
  if (r.pipeline) json["pipeline"] = to_json(*r.pipeline);
  for (const StageRecord& stage : r.stages) json["stages"].push_back(to_json(stage));
  if (r.simulated) json["simulated"] = true;
  if (!r.updates.empty()) json["updates"] = r.updates;
  if (!r.staleness.empty()) json["staleness"] = r.staleness;
  if (!r.shares.empty()) json["shares"] = r.shares;
  return json;
}

namespace {

void write_readable(const Json& value, size_t indent, std::string& into) {
  const auto is_plain = [](const Json& each) { return each.is_primitive(); };
  if (value.is_primitive() || value.empty() ||
      (value.is_array() && std::all_of(value.begin(), value.end(), is_plain))) {
    into += value.dump();
    return;
  }
  const char* before = "\n";
  into += value.is_object() ? '{' : '[';
  for (const auto& item : value.items()) {
    into.append(before).append(indent + 2, ' ');
    if (value.is_object()) into += Json(item.key()).dump() + ": ";
    write_readable(item.value(), indent + 2, into);
    before = ",\n";
  }
  into.append(1, '\n').append(indent, ' ').append(1, value.is_object() ? '}' : ']');
}

}  // namespace

std::string readable(const Json& value) {
  std::string text;
  write_readable(value, 0, text);
  return text + "\n";
}

namespace {

/// Fields that steps and runs share, and that older versions did not write.
template <typename Record>
void parts_from_json(const Json& j, Record& r) {
  r.forward_ms = number(j.value("forward_ms", Json(0.0)));
  r.backward_ms = number(j.value("backward_ms", Json(0.0)));
  r.optimizer_ms = number(j.value("optimizer_ms", Json(0.0)));
  r.hidden_ms = number(j.value("hidden_ms", Json(0.0)));
}

}  // namespace

StepRecord step_from_json(const Json& j) {
  StepRecord r;
  j.at("step").get_to(r.step);
  r.loss = number(j.at("loss"));
  r.lr = number(j.at("lr"));
  j.at("examples").get_to(r.examples);
  r.ms = number(j.at("ms"));
  r.compute_ms = number(j.at("compute_ms"));
  r.exchange_ms = number(j.at("exchange_ms"));
  r.data_ms = number(j.value("data_ms", Json(0.0)));
  parts_from_json(j, r);
  r.bytes_sent = number(j.at("bytes_sent"));
  r.grad_norm = number(j.value("grad_norm", Json(0.0)));
  return r;
}

EvalRecord eval_from_json(const Json& j) {
  EvalRecord r;
  j.at("step").get_to(r.step);
  r.loss = number(j.at("loss"));
  j.at("examples").get_to(r.examples);
  r.seconds = number(j.at("seconds"));
  r.model = j.value("model", "");
  r.split = j.value("split", "test");
  r.confusion = j.value("confusion", std::vector<std::vector<int64_t>>());
  for (const auto& [name, value] : j.items()) {
    if (name != "step" && name != "loss" && name != "examples" && name != "seconds" && name != "model" &&
        name != "split" && name != "confusion")
      r.measures[name] = number(value);
  }
  return r;
}

EpochRecord epoch_from_json(const Json& j) {
  EpochRecord r;
  j.at("epoch").get_to(r.epoch);
  r.seconds = number(j.at("seconds"));
  r.loss = number(j.at("loss"));
  if (j.contains("eval") && !j.at("eval").is_null()) r.eval = eval_from_json(j.at("eval"));
  return r;
}

NetworkRecord network_from_json(const Json& j) {
  NetworkRecord n;
  j.at("name").get_to(n.name);
  n.scale = number(j.at("scale"));
  n.how = j.value("how", "");
  n.congestion_control = j.value("congestion_control", "");
  n.late_ms_p99 = number(j.value("late_ms_p99", Json()));
  n.trustworthy = j.value("trustworthy", true);
  for (const Json& host : j.at("hosts")) n.hosts.push_back({host.at("name"), host.at("region")});
  j.at("seats").get_to(n.seats);
  for (const Json& link : j.at("links")) {
    n.links.push_back({.from = link.at("from"),
                       .to = link.at("to"),
                       .latency_ms = number(link.at("latency_ms")),
                       .gbit = number(link.at("gbit")),
                       .bytes = number(link.value("bytes", Json())),
                       .busy = number(link.value("busy", Json()))});
  }
  return n;
}

PredictionRecord prediction_from_json(const Json& j) {
  return {.ms = number(j.at("ms")),
          .compute_ms = number(j.at("compute_ms")),
          .exchange_ms = number(j.at("exchange_ms")),
          .hidden_ms = number(j.at("hidden_ms")),
          .bytes_sent_per_step = number(j.at("bytes_sent_per_step")),
          .from = j.value("from", "")};
}

StageRecord stage_from_json(const Json& j) {
  StageRecord s;
  j.at("ranks").get_to(s.ranks);
  j.at("blocks").get_to(s.blocks);
  for (const auto& [name, value] : kStageNumbers) s.*value = number(j.at(name));
  return s;
}

StageRecord mean_of(const std::vector<StageRecord>& stages) {
  StageRecord mean = stages.front();
  for (const auto& [name, value] : kStageNumbers) {
    double sum = 0;
    for (const StageRecord& stage : stages) sum += stage.*value;
    mean.*value = sum / static_cast<double>(stages.size());
  }
  return mean;
}

double busy_ms(const StageRecord& s) { return s.forward_ms + s.backward_ms + s.coding_ms + s.optimizer_ms; }

double waiting_ms(const StageRecord& s) {
  return s.waiting_forward_ms + s.waiting_backward_ms + s.sending_ms;
}

PipelineRecord pipeline_from_json(const Json& j) {
  return {.replicas = j.at("replicas"),
          .schedule = j.at("schedule"),
          .micro_batches = j.at("micro_batches"),
          .cut = j.at("cut"),
          .activation_codec = j.at("activation_codec"),
          .coded_evaluations = j.at("coded_evaluations")};
}

RunRecord run_from_json(const Json& j) {
  RunRecord r;
  j.at("task").get_to(r.task);
  j.at("model").get_to(r.model);
  j.at("strategy").get_to(r.strategy);
  r.init_from = j.value("init_from", "");
  r.device = j.value("device", "cpu");
  r.precision = j.value("precision", "fp32");
  r.skipped_steps = j.value("skipped_steps", int64_t{0});
  j.at("workers").get_to(r.workers);
  j.at("steps").get_to(r.steps);
  r.ended = j.value("ended", "steps");
  j.at("examples").get_to(r.examples);
  r.ms_per_iteration = number(j.at("ms_per_iteration"));
  r.compute_ms = number(j.at("compute_ms"));
  r.exchange_ms = number(j.at("exchange_ms"));
  r.data_ms = number(j.value("data_ms", Json(0.0)));
  parts_from_json(j, r);
  r.ms_p50 = number(j.value("ms_p50", Json(0.0)));
  r.ms_p95 = number(j.value("ms_p95", Json(0.0)));
  r.global_batch = j.value("global_batch", int64_t{0});
  r.examples_per_s = number(j.at("examples_per_s"));
  r.bytes_sent_per_step = number(j.at("bytes_sent_per_step"));
  r.train_loss = number(j.at("train_loss"));
  r.train_seconds = number(j.at("train_seconds"));
  for (const Json& epoch : j.at("epochs")) r.epochs.push_back(epoch_from_json(epoch));
  if (!j.at("eval").is_null()) r.eval = eval_from_json(j.at("eval"));
  if (j.contains("validation") && !j.at("validation").is_null())
    r.validation = eval_from_json(j.at("validation"));
  r.keep = j.value("keep", "last");
  r.kept_step = j.value("kept_step", r.steps);
  j.at("run_dir").get_to(r.run_dir);
  r.codec = j.value("codec", "none");
  r.data_hash = j.value("data_hash", "");
  r.start_hash = j.value("start_hash", "");
  r.test_hash = j.value("test_hash", "");
  if (const Json kinds = j.value("bytes_by_kind", Json()); kinds.is_object()) kinds.get_to(r.bytes_by_kind);
  const Json none = Json::array();
  for (const Json& each : j.value("collectives", none)) {
    r.collectives.push_back({.name = each.at("name"),
                             .calls = number(each.at("calls")),
                             .bytes = number(each.at("bytes")),
                             .seconds = number(each.at("seconds"))});
  }
  for (const Json& each : j.value("worker_evals", none)) r.worker_evals.push_back(eval_from_json(each));
  if (j.contains("network")) r.network = network_from_json(j.at("network"));
  if (j.contains("predicted")) r.predicted = prediction_from_json(j.at("predicted"));
  if (const Json pipeline = j.value("pipeline", Json()); pipeline.is_object())
    r.pipeline = pipeline_from_json(pipeline);
  for (const Json& stage : j.value("stages", none)) r.stages.push_back(stage_from_json(stage));
  r.simulated = j.value("simulated", false);
  r.cpu = j.value("cpu", "");
  r.cores = j.value("cores", int64_t{0});
  r.threads = j.value("threads", int64_t{0});
  r.outside_load = number(j.value("outside_load", Json()));
  r.peak_memory = j.value("peak_memory", int64_t{0});
  r.noise_scale = number(j.value("noise_scale", Json()));
  if (const Json from = j.value("provenance", Json()); from.is_object())
    r.provenance = {.version = from.value("version", ""),
                    .commit = from.value("commit", ""),
                    .date = from.value("date", ""),
                    .host = from.value("host", ""),
                    .command = from.value("command", ""),
                    .seed = from.value("seed", int64_t{0}),
                    .lr = number(from.value("lr", Json(0.0)))};
  r.updates = j.value("updates", std::vector<int64_t>());
  r.staleness = j.value("staleness", std::vector<std::vector<int64_t>>());
  r.shares = j.value("shares", std::vector<int64_t>{});
  return r;
}

}  // namespace syncopate::record
