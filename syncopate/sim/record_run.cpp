#include "syncopate/sim/record_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "syncopate/base/quantile.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {

record::NetworkRecord network_record(const spec::RunSpec& spec, const Scene& scene,
                                     const Prediction& prediction) {
  record::NetworkRecord network;
  network.name = scene.topology.name();
  network.scale = spec.network.scale;
  network.how = "simulated";
  std::map<int, int64_t> number;  // of the hosts that take part
  for (const int host : scene.seats) {
    if (number.try_emplace(host, static_cast<int64_t>(number.size())).second) {
      const network::Host& each = scene.topology.hosts()[static_cast<size_t>(host)];
      network.hosts.push_back({each.name, each.region});
    }
    network.seats.push_back(number.at(host));
  }
  // A thousand hosts have a million links: of those that carry something the busiest are told of.
  constexpr size_t kAllPairs = 16, kMostLinks = 2000;
  std::vector<LinkUse> uses = prediction.links;
  const auto by_place = [](const LinkUse& use) { return std::pair(use.from, use.to); };
  if (number.size() <= kAllPairs) {
    std::set<std::pair<int, int>> told;
    for (const LinkUse& use : uses) told.insert(by_place(use));
    for (const auto& [from, a] : number) {
      for (const auto& [to, b] : number) {
        if (from != to && !told.contains({from, to})) uses.push_back({.from = from, .to = to});
      }
    }
  } else if (uses.size() > kMostLinks) {
    network.how = fmt::format("simulated; the {} busiest of {} links", kMostLinks, uses.size());
    const auto last = uses.begin() + kMostLinks;
    std::partial_sort(uses.begin(), last, uses.end(), [&](const LinkUse& a, const LinkUse& b) {
      return a.busy != b.busy ? a.busy > b.busy : by_place(a) < by_place(b);
    });
    uses.erase(last, uses.end());
  }
  for (const LinkUse& use : uses) {
    const network::Link& link = scene.topology.link(use.from, use.to);
    network.links.push_back({.from = number.at(use.from),
                             .to = number.at(use.to),
                             .latency_ms = link.latency_ms,
                             .gbit = link.gbit,
                             .bytes = use.bytes,
                             .busy = use.busy});
  }
  std::sort(network.links.begin(), network.links.end(),
            [](const auto& a, const auto& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  return network;
}

SimulatedRun simulated_run(const spec::RunSpec& spec, const Scene& scene, const Prediction& prediction,
                           int64_t steps) {
  SimulatedRun run;
  const bool free = spec.runs_free();
  const auto workers = static_cast<double>(spec.comm.workers);
  const int64_t global = spec.examples_per_step();
  const auto period = static_cast<int64_t>(prediction.step_ms.size());
  double seconds = 0;
  for (int64_t step = 0; step < steps; ++step) {
    record::StepRecord& record = run.steps.emplace_back();
    record.step = step + 1;
    record.loss = record::kNan;
    record.lr = spec.optim.lr;
    record.examples = free ? global / spec.comm.workers : global;
    record.ms = prediction.step_ms[static_cast<size_t>(step % period)];
    record.compute_ms = std::min(prediction.compute_ms, record.ms);
    record.data_ms = std::min(prediction.data_ms, record.ms - record.compute_ms);
    record.exchange_ms = record.ms - record.compute_ms - record.data_ms;
    record.hidden_ms = prediction.hidden_ms;
    record.forward_ms = prediction.forward_ms;
    record.backward_ms = prediction.backward_ms;
    record.optimizer_ms = prediction.update_ms;
    record.bytes_sent = prediction.bytes_per_step;
    seconds += record.ms / 1e3 / (free ? workers : 1);
  }
  record::RunRecord& result = run.result;
  result.task = spec.task.name;
  result.model = spec.model.init_from.empty() ? spec.model.name : spec.model.init_from;
  result.strategy = spec.strategy.name;
  result.codec = spec.codec.name;
  result.device = scene.profile.device;
  result.precision = scene.profile.precision;
  result.workers = spec.comm.workers;
  result.steps = steps;
  result.global_batch = free ? global / spec.comm.workers : global;
  result.examples = steps * result.global_batch;
  result.ms_per_iteration = prediction.ms;
  std::vector<double> all_ms;
  for (const record::StepRecord& step : run.steps) all_ms.push_back(step.ms);
  result.ms_p50 = quantile(all_ms, 0.5);
  result.ms_p95 = quantile(all_ms, 0.95);
  result.compute_ms = prediction.compute_ms;
  result.exchange_ms = prediction.exchange_ms;
  result.data_ms = prediction.data_ms;
  result.forward_ms = prediction.forward_ms;
  result.backward_ms = prediction.backward_ms;
  result.optimizer_ms = prediction.update_ms;
  result.hidden_ms = prediction.hidden_ms;
  result.examples_per_s = prediction.examples_per_s;
  result.bytes_sent_per_step = prediction.bytes_per_step;
  const bool parameters = spec::strategy_info(spec.strategy.name).sends_parameters;
  result.bytes_by_kind = {{"gradients", parameters ? 0 : prediction.bytes_per_step},
                          {"parameters", parameters ? prediction.bytes_per_step : 0},
                          {"activations", 0},
                          {"control", 0}};
  result.train_loss = record::kNan;
  result.train_seconds = seconds;
  result.cpu = scene.profile.cpu;
  result.cores = scene.profile.cores;
  result.threads = scene.profile.threads;
  result.peak_memory = static_cast<int64_t>(prediction.memory);
  result.network = network_record(spec, scene, prediction);
  result.predicted = record::PredictionRecord{.ms = prediction.ms,
                                              .compute_ms = prediction.compute_ms,
                                              .exchange_ms = prediction.exchange_ms,
                                              .hidden_ms = prediction.hidden_ms,
                                              .bytes_sent_per_step = prediction.bytes_per_step,
                                              .from = "the simulation itself"};
  result.simulated = true;
  return run;
}

}  // namespace syncopate::sim
