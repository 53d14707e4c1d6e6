// Which arms no other beats in both speed and quality.
#include <algorithm>

#include "syncopate/report/analysis/comparison.h"

namespace syncopate::report {

void find_front(Comparison& of) {
  std::vector<ArmResult>& arms = of.results.arms;
  int64_t groups = 0;
  for (const ArmResult& arm : arms) groups = std::max(groups, arm.group + 1);
  for (int64_t group = 0; group < groups; ++group) {
    std::vector<const ArmResult*> members;
    for (const ArmResult& arm : arms) {
      if (arm.group == group) members.push_back(&arm);
    }
    // Nobody can choose the network: each has a front of its own.
    std::vector<NetworkName> networks = networks_in(members);
    if (networks.size() < 2) networks = {NetworkName()};
    for (const NetworkName& network : networks) {
      std::vector<std::pair<double, double>> points;
      for (const ArmResult& arm : arms) {
        const bool here = networks.size() < 2 || arm.workers == 1 || arm.on == network;
        const bool counts = here && arm.group == group && !arm.excluded && arm.kind == "row" &&
                            !arm.simulated && arm.timing_counts();
        const double quality = arm.measure.higher_is_better ? arm.quality.mean : -arm.quality.mean;
        points.emplace_back(counts ? arm.speedup.mean : kUnknown, quality);
      }
      const std::vector<bool> front = pareto_front(points);
      for (size_t i = 0; i < arms.size(); ++i) arms[i].pareto = arms[i].pareto || front[i];
    }
  }
}

}  // namespace syncopate::report
