#include "syncopate/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::optim {
namespace {

/// A fraction of the steps, or steps if above 1.
double steps_of(double value, int64_t total) {
  return value > 1 ? value : value * static_cast<double>(total);
}

void require(bool holds, const char* name, const char* expected, double value) {
  if (!holds || !std::isfinite(value)) throw ConfigError("{} must be {}, got {}", name, expected, value);
}

std::vector<int64_t> read_milestones(const std::string& text, int64_t total) {
  std::vector<int64_t> steps;
  for (const std::string_view piece : split(text, ',')) {
    const auto value = parse_number(trim(piece));
    if (!value || !(*value > 0) || !std::isfinite(*value)) {
      throw ConfigError(
          "milestones must be fractions of the steps (or steps, above 1) like \"0.5,0.75\", got \"{}\"",
          text);
    }
    steps.push_back(std::llround(steps_of(*value, total)));
    if (steps.size() > 1 && steps.back() < steps[steps.size() - 2]) {
      throw ConfigError("milestones must rise from the first to the last, got \"{}\"", text);
    }
  }
  return steps;
}

double scale_of(const ScheduleOptions& options) {
  const auto& names = scaling_names();
  if (std::find(names.begin(), names.end(), options.scaling) == names.end()) {
    throw ConfigError("unknown scaling of the learning rate \"{}\"{}", options.scaling,
                      suggestion(options.scaling, names));
  }
  if (options.scaling == "none") return 1;
  require(options.base_batch > 0, "base_batch", "above 0 to scale the learning rate", options.base_batch);
  require(options.batch > 0, "batch", "above 0 to scale the learning rate", options.batch);
  const double ratio = options.batch / options.base_batch;
  return options.scaling == "linear" ? ratio : std::sqrt(ratio);
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"linear", "cosine", "constant", "step", "cyclic", "polynomial"};
  return names;
}

const std::vector<std::string>& scaling_names() {
  static const std::vector<std::string> names{"none", "linear", "sqrt"};
  return names;
}

Schedule::Schedule(ScheduleOptions options, int64_t total_steps)
    : options_(std::move(options)), peak_(options_.lr), total_(total_steps), warmup_steps_(0) {
  const auto& names = schedule_names();
  if (std::find(names.begin(), names.end(), options_.kind) == names.end()) {
    throw ConfigError("unknown schedule \"{}\"{}", options_.kind, suggestion(options_.kind, names));
  }
  require(options_.lr >= 0, "lr", "a number of 0 or more", options_.lr);
  require(options_.warmup >= 0, "warmup", "0 or more (a fraction of the steps, or steps if above 1)",
          options_.warmup);
  if (options_.kind == "step") {
    require(options_.gamma > 0, "gamma", "above 0", options_.gamma);
    milestones_ = read_milestones(options_.milestones, total_);
  } else if (options_.kind == "cyclic") {
    require(options_.cycle > 0, "cycle", "above 0 (a fraction of the steps, or steps if above 1)",
            options_.cycle);
    require(options_.cycle_ratio >= 1, "cycle_ratio", "1 or more", options_.cycle_ratio);
    period_ = std::max(2.0, std::round(steps_of(options_.cycle, total_)));
  } else if (options_.kind == "polynomial") {
    require(options_.power > 0, "power", "above 0", options_.power);
    require(options_.final_share >= 0 && options_.final_share <= 1, "final_share", "from 0 to 1",
            options_.final_share);
  }
  peak_ *= scale_of(options_);
  warmup_steps_ = std::min(total_, static_cast<int64_t>(std::llround(steps_of(options_.warmup, total_))));
}

double Schedule::lr(int64_t step) const {
  if (step < warmup_steps_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  return peak_ * share_of_peak(step);
}

double Schedule::share_of_peak(int64_t step) const {
  const std::string& kind = options_.kind;
  if (kind == "constant") return 1;
  if (kind == "step") {
    const auto passed =
        std::count_if(milestones_.begin(), milestones_.end(), [&](int64_t at) { return step >= at; });
    return std::pow(options_.gamma, static_cast<double>(passed));
  }
  if (kind == "cyclic") {
    // 0 at the bottom of the triangle, 1 at its top.
    const double start = warmup_steps_ > 0 ? 0.5 : 0.0;
    const double phase = std::fmod(start + static_cast<double>(step - warmup_steps_) / period_, 1.0);
    const double height = 1 - std::abs(2 * phase - 1), low = 1 / options_.cycle_ratio;
    return low + (1 - low) * height;
  }
  const double left = static_cast<double>(std::max<int64_t>(1, total_ - warmup_steps_));
  const double done = std::min(1.0, static_cast<double>(step - warmup_steps_) / left);
  if (kind == "polynomial") {
    return options_.final_share + (1 - options_.final_share) * std::pow(1 - done, options_.power);
  }
  return kind == "linear" ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace syncopate::optim
