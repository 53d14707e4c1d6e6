#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "syncopate/lab/plan.h"
#include "syncopate/lab/runner.h"

// What a sweep will cost, from the first steps of real runs.
namespace syncopate::lab {

/// What the beginning of a run tells about all of it.
struct Probe {
  double start_seconds = 0;                        ///< until the first step: loading, tokenizing, meeting
  double step_seconds = 0;                         ///< of a step, or an update where workers run free
  int64_t training = 0, validation = 0, test = 0;  ///< examples
  std::string failure{};  ///< why it cannot run; empty: it can, if only for too few steps to know its time
};

/// How long such a run takes by its probe. An evaluation counts as a third of training on its examples.
double expected_seconds(const spec::RunSpec& spec, const Probe& probe);

struct Estimate {
  double seconds = 0;     ///< of one run; NaN: not known
  std::string failure{};  ///< of its probe
};

struct Probing {
  std::function<bool()> stop_requested = [] { return false; };
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// For each run of the plan what it takes: of one that is done what it took, of others what a probe says, one
/// probe for all that cost the same. A probe that fails speaks for its own run alone (a rate may be bad), and
/// the next one is probed; after a few failures the rest are not known. Probes run one after another in a
/// folder that is removed.
std::vector<Estimate> estimate(const Plan& plan, const Probing& probing, Runner& runner);

}  // namespace syncopate::lab
