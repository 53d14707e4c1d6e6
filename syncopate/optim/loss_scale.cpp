#include "syncopate/optim/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"

namespace syncopate::optim {
namespace {

constexpr double kMost = 0x1p100;  // far beyond any use, far below what fp32 cannot hold

}  // namespace

LossScale::LossScale(double start, double factor, int grow_every)
    : value_(start), factor_(factor), grow_every_(grow_every) {
  if (!(start >= 1 && start <= kMost)) {
    throw ConfigError("the loss scale must start at 1 or more, got {}", start);
  }
  if (!(factor > 1 && factor <= kMost)) {
    throw ConfigError("the factor of the loss scale must be above 1, got {}", factor);
  }
  if (grow_every < 1) {
    throw ConfigError("the loss scale must grow after 1 or more steps, got {}", grow_every);
  }
}

void LossScale::overflowed() {
  value_ = std::max(1.0, value_ / factor_);
  good_steps_ = 0;
  ++skipped_;
}

void LossScale::succeeded() {
  if (++good_steps_ < grow_every_) return;
  value_ = std::min(kMost, value_ * factor_);
  good_steps_ = 0;
}

LossScale::State LossScale::state() const {
  return {value_, static_cast<double>(good_steps_), static_cast<double>(skipped_)};
}

void LossScale::restore(const State& state) {
  const bool sound = state.value >= 1 && state.value <= kMost && state.good_steps >= 0 &&
                     state.good_steps <= 0x1p53 && state.skipped >= 0 && state.skipped <= 0x1p53;
  if (!sound) {
    throw DataError("a checkpoint holds the loss scale {} after {} steps, which cannot be; use another one",
                    state.value, state.good_steps);
  }
  value_ = state.value;
  good_steps_ = static_cast<int64_t>(state.good_steps);
  skipped_ = static_cast<int64_t>(state.skipped);
}

}  // namespace syncopate::optim
