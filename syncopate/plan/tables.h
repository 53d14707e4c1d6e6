#pragma once

#include <vector>

#include "syncopate/plan/problem.h"

namespace syncopate::plan {

/// A problem's costs of every two devices, looked up instead of computed. Stages (and cuts) of nearly one
/// size share a table, which is that of the largest.
class Tables {
 public:
  explicit Tables(const Problem& problem);
  const Problem& problem() const { return problem_; }
  /// Row of device `from`: seconds of exchange with each other device of a stage.
  const float* exchange(int stage, int from) const { return row(exchange_, exchange_kind_, stage, from); }
  /// Row of device `from`, in `stage`: forward to and backward from each device of the next.
  const float* link(int stage, int from) const { return row(link_, link_kind_, stage, from); }
  /// The same by its far end: row of device `to`, in the stage behind `stage`.
  const float* link_to(int stage, int to) const { return row(link_to_, link_kind_, stage, to); }
  /// Only the seconds that a link is busy, forward and backward.
  const float* busy_there(int stage, int from) const { return row(there_, link_kind_, stage, from); }
  const float* busy_back(int stage, int from) const { return row(back_, link_kind_, stage, from); }
  /// Whether it makes no difference which of two devices sits where.
  bool twins(int a, int b) const { return twin_[static_cast<size_t>(a)] == twin_[static_cast<size_t>(b)]; }
  /// Whether all stages are alike, so that their order is that of a path.
  bool even() const { return exchange_.size() <= 1 && link_.size() <= 1 && even_work_; }

 private:
  const float* row(const std::vector<std::vector<float>>& tables, const std::vector<size_t>& kinds, int stage,
                   int from) const {
    return tables[kinds[static_cast<size_t>(stage)]].data() +
           static_cast<size_t>(from) * static_cast<size_t>(problem_.devices());
  }
  const Problem& problem_;
  std::vector<std::vector<float>> exchange_, link_, link_to_, there_, back_;
  std::vector<size_t> exchange_kind_, link_kind_;
  std::vector<int> twin_;  ///< of each device: the first that is like it
  bool even_work_ = true;
};

}  // namespace syncopate::plan
