#include "syncopate/record/bandwidth.h"

namespace syncopate::record {

double bus_factor(std::string_view collective, int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  if (collective == "all_reduce") return ranks > 1 ? 2 * (n - 1) / n : 0;
  for (const char* const name : {"all_gather", "reduce_scatter", "gather", "scatter"}) {
    if (collective == name) return ranks > 1 ? (n - 1) / n : 0;
  }
  for (const char* const name : {"broadcast", "reduce", "send", "receive"}) {
    if (collective == name) return ranks > 1 ? 1 : 0;
  }
  return kNan;
}

double algorithm_bandwidth(const Collective& collective) {
  return collective.seconds > 0 ? collective.bytes / collective.seconds : kNan;
}

double bus_bandwidth(const Collective& collective, int64_t ranks) {
  return algorithm_bandwidth(collective) * bus_factor(collective.name, ranks);
}

}  // namespace syncopate::record
