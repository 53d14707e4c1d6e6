#include "syncopate/sim/record_run.h"

#include <algorithm>
#include <map>

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
  for (const auto& [from, a] : number) {
    for (const auto& [to, b] : number) {
      if (from == to) continue;
      const network::Link& link = scene.topology.link(from, to);
      const auto used = std::find_if(prediction.links.begin(), prediction.links.end(),
                                     [&](const LinkUse& use) { return use.from == from && use.to == to; });
      const bool silent = used == prediction.links.end();
      // A thousand hosts have a million links: those that carry something are told of.
      if (silent && number.size() > 16) continue;
      network.links.push_back({.from = a,
                               .to = b,
                               .latency_ms = link.latency_ms,
                               .gbit = link.gbit,
                               .bytes = silent ? 0 : used->bytes,
                               .busy = silent ? 0 : used->busy});
    }
  }
  return network;
}

SimulatedRun simulated_run(const spec::RunSpec& spec, const Scene& scene, const Prediction& prediction,
                           int64_t steps) {
  SimulatedRun run;
  const bool free = spec.runs_free();
  const auto workers = static_cast<double>(spec.comm.workers);
  const int64_t global = spec.examples_per_step();
  const BatchTime time = scene.profile.at(static_cast<double>(global) / workers);
  const double parts = time.forward_s + time.backward_s + time.update_s;
  const auto part = [&](double seconds) { return parts > 0 ? prediction.compute_ms * seconds / parts : 0; };
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
    record.exchange_ms = record.ms - record.compute_ms;
    record.hidden_ms = prediction.hidden_ms;
    record.forward_ms = part(time.forward_s);
    record.backward_ms = part(time.backward_s);
    record.optimizer_ms = part(time.update_s);
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
  std::vector<double> sorted = prediction.step_ms;
  std::sort(sorted.begin(), sorted.end());
  result.ms_p50 = sorted[sorted.size() / 2];
  result.ms_p95 = sorted[static_cast<size_t>(0.95 * static_cast<double>(sorted.size() - 1))];
  result.compute_ms = prediction.compute_ms;
  result.exchange_ms = prediction.exchange_ms;
  result.data_ms = std::max(0.0, prediction.ms - prediction.compute_ms - prediction.exchange_ms);
  result.forward_ms = part(time.forward_s);
  result.backward_ms = part(time.backward_s);
  result.optimizer_ms = part(time.update_s);
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
