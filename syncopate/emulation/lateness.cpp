#include "syncopate/emulation/lateness.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace syncopate::emulation {

void Lateness::add(int64_t late_ns, int64_t latency_ns) {
  // What a measurement of a link does not see: a millisecond, or a twentieth of the way.
  constexpr int64_t kBoundNs = 1'000'000, kShareOfWay = 20;
  late_ns = std::max<int64_t>(late_ns, 0);
  const double microseconds = static_cast<double>(late_ns) * 1e-3;
  const int place = microseconds <= 1 ? 0 : 1 + static_cast<int>(kPerOctave * std::log2(microseconds));
  ++counts_[static_cast<size_t>(std::min(place, static_cast<int>(counts_.size()) - 1))];
  if (late_ns > std::max(kBoundNs, latency_ns / kShareOfWay)) ++beyond_;
  max_ns_ = std::max(max_ns_, late_ns);
}

double late_ms(std::span<const double> counts, double share) {
  const double wanted = share * std::accumulate(counts.begin(), counts.end(), 0.0);
  double seen = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    seen += counts[k];
    if (seen < wanted || counts[k] == 0) continue;
    const double microseconds =
        k == 0 ? 0.5 : std::exp2((static_cast<double>(k) - 0.5) / Lateness::kPerOctave);
    return microseconds * 1e-3;
  }
  return 0;
}

}  // namespace syncopate::emulation
