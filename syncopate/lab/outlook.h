#pragma once

#include <map>
#include <optional>
#include <string>

#include "syncopate/lab/plan.h"

namespace syncopate::lab {

/// How long runs take, from those that are done or were probed.
class Outlook {
 public:
  void took(const SweepRun& run, double seconds);
  /// Like others of the same settings, else like others of its kind, else like any; none: nothing is known.
  std::optional<double> expected(const SweepRun& run) const;

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
  };
  std::map<std::string, Mean> by_cost_, by_kind_;
  Mean all_;
};

}  // namespace syncopate::lab
