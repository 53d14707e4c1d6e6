#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/plan/plan.h"

namespace syncopate::plan {
namespace {

using Json = nlohmann::ordered_json;

/// Seven digits, so that the sum of rounded parts looks like the rounded sum.
double rounded(double value) {
  const std::string text = fmt::format("{:.7g}", value);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

Json known(double value) { return value > 0 ? Json(rounded(value)) : Json(nullptr); }

Json memory_of(const std::vector<Memory>& stages) {
  Json all = Json::array();
  for (const Memory& memory : stages) {
    all.push_back({{"weights", std::llround(memory.weights)},
                   {"gradients", std::llround(memory.gradients)},
                   {"optimizer", std::llround(memory.optimizer)},
                   {"activations", std::llround(memory.activations)}});
  }
  return all;
}

Json links_of(const Plan& plan) {
  Json all = Json::array();
  for (const Traffic& traffic : plan.traffic) {
    const network::Link& link = plan.request.topology.between_devices(traffic.from, traffic.to);
    all.push_back({{"from", traffic.from},
                   {"to", traffic.to},
                   {"kind", traffic.gradients ? "gradients" : "activations"},
                   {"bytes", std::llround(traffic.bytes)},
                   {"latency_ms", link.latency_ms},
                   {"gbit", link.gbit}});
  }
  return all;
}

}  // namespace

Json to_json(const Plan& plan) {
  const network::Topology& topology = plan.request.topology;
  Json stages = Json::array(), hosts = Json::array(), devices = Json::array(), layers = Json::array(),
       cut = Json::array();
  for (int stage = 0; stage < plan.layout.stages; ++stage) {
    Json row = Json::array();
    for (int replica = 0; replica < plan.layout.replicas; ++replica)
      row.push_back(plan.layout.at(stage, replica));
    stages.push_back(std::move(row));
    const size_t s = static_cast<size_t>(stage);
    const int end = s + 1 < plan.split.size() ? plan.split[s + 1] : plan.request.job.depth();
    layers.push_back({plan.split[s], end});
    cut.push_back(end - plan.split[s]);
  }
  for (const network::Host& host : topology.hosts())
    hosts.push_back({{"name", host.name}, {"region", host.region}, {"devices", host.devices}});
  for (int device = 0; device < topology.devices(); ++device) devices.push_back(topology.host_of(device));
  Json json{{"format", "syncopate-placement-1"},
            {"network", topology.name()},
            {"cluster", plan.request.cluster.empty() ? Json(nullptr) : Json(plan.request.cluster)},
            {"scale", plan.request.scale},
            {"cost", plan.request.published ? "published" : "full"},
            {"seed", plan.request.effort.seed},
            {"stages", std::move(stages)},
            {"cost_s", rounded(plan.cost.total_s)},
            {"data_parallel_s", rounded(plan.cost.data_parallel_s)},
            {"pipeline_s", rounded(plan.cost.pipeline_s)},
            {"compute_s", rounded(plan.cost.compute_s)},
            {"random_s", rounded(plan.random_s)},
            {"region_blind_s", rounded(plan.region_blind_s)},
            {"one_device_s", known(plan.one_device_s)},
            {"played_out_s", known(plan.played_out_s)},
            {"schedule", "gpipe"},
            {"micro_batches", plan.shape.micro_batches}};
  if (plan.request.job.global_batch > 0) json["global_batch"] = plan.request.job.global_batch;
  if (!plan.request.job.name.empty()) json["model"] = plan.request.job.name;
  json["layers"] = std::move(layers);
  // Sizes that stand for a model say nothing of its blocks.
  json["cut"] = plan.request.job.profile ? std::move(cut) : Json(nullptr);
  json["bits"] = {{"gradient", std::floor(plan.problem.gradient.bits)},
                  {"forward", std::floor(plan.problem.forward.bits)},
                  {"backward", std::floor(plan.problem.backward.bits)}};
  json["parts"] = {{"compute_s", rounded(plan.cost.compute_s)},
                   {"pipeline_s", rounded(plan.cost.pipeline_s)},
                   {"data_parallel_s", rounded(plan.cost.data_parallel_s)},
                   {"hidden_s", rounded(plan.cost.hidden_s)}};
  json["memory"] = memory_of(plan.memory);
  json["fewest_devices"] = plan.fewest_devices > 0 ? Json(plan.fewest_devices) : Json(nullptr);
  json["epoch_s"] = known(plan.epoch_s);
  json["epoch_price"] = known(plan.epoch_price);
  json["hosts"] = std::move(hosts);
  json["devices"] = std::move(devices);
  json["regions"] = topology.regions();
  json["links"] = links_of(plan);
  return json;
}

}  // namespace syncopate::plan
