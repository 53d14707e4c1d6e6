#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace syncopate {

/// The value below which a share of them lies, on a straight line between neighbours; of at least one.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

}  // namespace syncopate
