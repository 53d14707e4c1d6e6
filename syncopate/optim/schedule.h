#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::optim {

struct ScheduleOptions {
  std::string kind = "linear";  ///< linear, cosine or constant after the warm-up
  double lr = 5e-4;             ///< the peak
  double warmup = 0.1;          ///< share of the steps, or steps if above 1
};

const std::vector<std::string>& schedule_names();

/// The learning rate of each step: up linearly over the warm-up, then down to zero (linear, cosine) or level.
/// A pure function of the step, so it needs no state in a checkpoint.
class Schedule {
 public:
  Schedule(ScheduleOptions options, int64_t total_steps);  ///< throws ConfigError
  double lr(int64_t step) const;                           ///< `step` counts from 0
  int64_t warmup_steps() const { return warmup_steps_; }

 private:
  enum class Kind { kLinear, kCosine, kConstant };
  double peak_;
  int64_t total_;
  int64_t warmup_steps_;
  Kind kind_;
};

}  // namespace syncopate::optim
