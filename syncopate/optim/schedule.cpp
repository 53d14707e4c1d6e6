#include "syncopate/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::optim {

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"linear", "cosine", "constant"};
  return names;
}

Schedule::Schedule(ScheduleOptions options, int64_t total_steps)
    : peak_(options.lr), total_(total_steps), warmup_steps_(0), kind_(Kind::kLinear) {
  if (!(options.lr >= 0) || !std::isfinite(options.lr)) {
    throw ConfigError("optim.lr must be a number of 0 or more, got {}", options.lr);
  }
  if (!(options.warmup >= 0) || !std::isfinite(options.warmup)) {
    throw ConfigError("optim.warmup must be 0 or more (a share of the steps, or steps if above 1), got {}",
                      options.warmup);
  }
  if (options.kind == "cosine") {
    kind_ = Kind::kCosine;
  } else if (options.kind == "constant") {
    kind_ = Kind::kConstant;
  } else if (options.kind != "linear") {
    throw ConfigError("unknown schedule \"{}\"{}", options.kind, suggestion(options.kind, schedule_names()));
  }
  const double steps =
      options.warmup > 1 ? options.warmup : options.warmup * static_cast<double>(total_steps);
  warmup_steps_ = std::min(total_steps, static_cast<int64_t>(std::llround(steps)));
}

double Schedule::lr(int64_t step) const {
  if (step < warmup_steps_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  if (kind_ == Kind::kConstant) return peak_;
  const double left = static_cast<double>(std::max<int64_t>(1, total_ - warmup_steps_));
  const double done = std::min(1.0, static_cast<double>(step - warmup_steps_) / left);
  return kind_ == Kind::kLinear ? peak_ * (1 - done) : peak_ * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace syncopate::optim
