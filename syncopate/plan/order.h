#pragma once

#include <vector>

namespace syncopate::plan {

/// The order in which a path visits all `size` places at the least sum of `distance` (row by row: from, to;
/// it may differ by direction). Exact for up to `exact` places, else improved from `start` by moving and
/// turning stretches until nothing helps.
std::vector<int> shortest_path(const std::vector<float>& distance, int size, const std::vector<int>& start,
                               int exact = 12);

double path_length(const std::vector<float>& distance, int size, const std::vector<int>& order);

}  // namespace syncopate::plan
