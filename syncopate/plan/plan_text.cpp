#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "syncopate/base/text.h"
#include "syncopate/plan/plan.h"
#include "syncopate/plan/words.h"

namespace syncopate::plan {
namespace {

std::string seconds(double s) {
  if (s >= 100) return fmt::format("{:.1f} s", s);
  if (s >= 1) return fmt::format("{:.3f} s", s);
  return fmt::format("{:.2f} ms", 1e3 * s);
}

std::string place_name(const network::Topology& topology, int device) {
  const network::Host& host = topology.hosts()[static_cast<size_t>(topology.host_of(device))];
  return host.devices > 1 ? fmt::format("{}:{}", host.name, device) : host.name;
}

/// Stage by stage, one column for each replica; a list of regions where there are too many for the screen.
std::string table(const Plan& plan) {
  const network::Topology& topology = plan.request.topology;
  constexpr int kMostColumns = 8;
  const int columns = std::min(plan.layout.replicas, kMostColumns);
  std::vector<size_t> width(static_cast<size_t>(columns), 0);
  for (int replica = 0; replica < columns; ++replica) {
    width[static_cast<size_t>(replica)] = fmt::format("replica {}", replica).size();
    for (int stage = 0; stage < plan.layout.stages; ++stage)
      width[static_cast<size_t>(replica)] =
          std::max(width[static_cast<size_t>(replica)],
                   columns_of(place_name(topology, plan.layout.at(stage, replica))));
  }
  std::string text = "stage  layers ";
  for (int replica = 0; replica < columns; ++replica)
    text += fmt::format("  {:<{}}", fmt::format("replica {}", replica), width[static_cast<size_t>(replica)]);
  text += "  regions\n";
  for (int stage = 0; stage < plan.layout.stages; ++stage) {
    const size_t s = static_cast<size_t>(stage);
    const int end = s + 1 < plan.split.size() ? plan.split[s + 1] : plan.request.job.depth();
    text += fmt::format("{:>5}  {:<7}", stage,
                        end - plan.split[s] == 1 ? fmt::format("{}", plan.split[s])
                                                 : fmt::format("{}-{}", plan.split[s], end - 1));
    std::set<std::string> regions;
    for (int replica = 0; replica < plan.layout.replicas; ++replica) {
      const int device = plan.layout.at(stage, replica);
      regions.insert(topology.hosts()[static_cast<size_t>(topology.host_of(device))].region);
      if (replica < columns)
        text += fmt::format("  {:<{}}", place_name(topology, device), width[static_cast<size_t>(replica)]);
    }
    std::string names;
    for (const std::string& region : regions) names += (names.empty() ? "" : ", ") + region;
    text += (plan.layout.replicas > columns ? " …  " : "  ") + names + "\n";
  }
  return text;
}

std::string memory_line(const Plan& plan) {
  const auto fullest =
      std::max_element(plan.memory.begin(), plan.memory.end(),
                       [](const Memory& a, const Memory& b) { return a.total() < b.total(); });
  return fmt::format(
      "memory        {} on each device of stage {}, the fullest: weights {}, gradients {}, optimizer {}, "
      "activations {}\n",
      bytes_for_people(fullest->total()), fullest - plan.memory.begin(), bytes_for_people(fullest->weights),
      bytes_for_people(fullest->gradients), bytes_for_people(fullest->optimizer),
      fullest->activations > 0 ? bytes_for_people(fullest->activations) : "not known");
}

std::string gain(const char* over, double theirs, double ours) {
  return fmt::format("{:<13} {}, {:.2f} times as long\n", over, seconds(theirs), theirs / ours);
}

}  // namespace

std::string to_text(const Plan& plan) {
  const network::Topology& topology = plan.request.topology;
  const int used = plan.layout.stages * plan.layout.replicas;
  std::string text =
      fmt::format("{}: {} x {} on {} of {}{}\n\n", topology.name(), plural(plan.layout.stages, "stage"),
                  plural(plan.layout.replicas, "replica"), used, plural(topology.devices(), "device"),
                  used < topology.devices() ? fmt::format(", {} unused", topology.devices() - used) : "");
  text += table(plan) + "\n";
  text += fmt::format(
      "iteration     {}: {}{} along the pipeline, {} to average gradients{}\n", seconds(plan.cost.total_s),
      plan.cost.compute_s > 0 ? fmt::format("{} computing, ", seconds(plan.cost.compute_s)) : "",
      seconds(plan.cost.pipeline_s), seconds(plan.cost.data_parallel_s),
      plan.cost.hidden_s > 0
          ? fmt::format(" ({} more hidden behind the backward pass)", seconds(plan.cost.hidden_s))
          : "");
  if (plan.played_out_s > 0)
    text += fmt::format("played out    {}, event by event: links shared by a host's devices, TCP's headers\n",
                        seconds(plan.played_out_s));
  if (used > 1 && plan.cost.total_s > 0) {
    text += gain("random", plan.random_s, plan.cost.total_s);
    text += gain("region-blind", plan.region_blind_s, plan.cost.total_s);
  }
  if (!plan.request.published) {
    text += fmt::format("micro-batches {}\n", plan.shape.micro_batches);
    if (used > 1) {
      text += "bits         ";
      if (plan.layout.stages > 1)
        text += fmt::format(" activations {}, their gradients {};", std::floor(plan.problem.forward.bits),
                            std::floor(plan.problem.backward.bits));
      if (plan.layout.replicas > 1)
        text += fmt::format(" gradients {}", std::floor(plan.problem.gradient.bits));
      if (text.back() == ';') text.pop_back();
      text += "\n";
    }
  }
  text += memory_line(plan);
  if (plan.fewest_devices > 0) {
    text += fmt::format("fewest        {} hold{} the model and a batch\n",
                        plural(plan.fewest_devices, "device"), plan.fewest_devices == 1 ? "s" : "");
  }
  if (plan.epoch_s > 0) {
    text += fmt::format("epoch         {}{}\n", duration_for_people(plan.epoch_s),
                        plan.epoch_price > 0 ? fmt::format(", price {:.2f}", plan.epoch_price) : "");
  }
  if (plan.one_device_s > 0) {
    text += fmt::format("one device    {}", seconds(plan.one_device_s));
    if (used == 1) {
      text += ": it suffices, more are no faster on this network\n";
    } else if (plan.one_device_s <= plan.cost.total_s) {
      text += ": one device is faster than this placement\n";
    } else {
      text += fmt::format(", {:.2f} times as long\n", plan.one_device_s / plan.cost.total_s);
    }
  }
  return text;
}

}  // namespace syncopate::plan
