#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::optim {

struct ScheduleOptions {
  std::string kind = "linear";          ///< one of schedule_names(), after the warm-up
  double lr = 5e-4;                     ///< the peak, before scaling
  double warmup = 0.1;                  ///< fraction of the steps, or steps if above 1
  double gamma = 0.1;                   ///< step: what the rate is multiplied by at each milestone
  std::string milestones = "0.5,0.75";  ///< step: fractions of the steps, or steps if above 1
  double cycle = 0.2;                   ///< cyclic: its period, a fraction of the steps, or steps if above 1
  double cycle_ratio = 10;              ///< cyclic: the peak in units of the lowest rate
  double power = 2;                     ///< polynomial
  double final_share = 0;               ///< polynomial: the last rate, in units of the peak
  std::string scaling = "none";         ///< by the batch: none, linear or sqrt
  double base_batch = 256;              ///< the batch that `lr` is for
  double batch = 0;                     ///< the batch of this run, over all ranks; needed to scale
};

const std::vector<std::string>& schedule_names();
const std::vector<std::string>& scaling_names();

/// The learning rate of each step: up linearly over the warm-up, then down to zero (linear, cosine), down to
/// `final_share` (polynomial), down at milestones (step), down and up again (cyclic: from where the warm-up
/// left it; without a warm-up from the bottom) or level (constant). With `scaling` all of it times
/// batch / base_batch or its root. A pure function of the step, so it needs no state in a checkpoint.
class Schedule {
 public:
  Schedule(ScheduleOptions options, int64_t total_steps);  ///< throws ConfigError
  double lr(int64_t step) const;                           ///< `step` counts from 0
  int64_t warmup_steps() const { return warmup_steps_; }
  double peak() const { return peak_; }  ///< after scaling

 private:
  double share_of_peak(int64_t step) const;  ///< after the warm-up

  ScheduleOptions options_;
  double peak_;
  int64_t total_;
  int64_t warmup_steps_;
  std::vector<int64_t> milestones_;
  double period_ = 0;
};

}  // namespace syncopate::optim
