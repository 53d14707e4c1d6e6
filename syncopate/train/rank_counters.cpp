#include "syncopate/train/rank_counters.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>

namespace syncopate::train {
namespace {

/// As the tensor holds them.
struct Counters {
  double optimizer_steps = 0;
  double loss_scale = 0, good_steps = 0, skipped = 0;
};
constexpr int64_t kNumbers = sizeof(Counters) / sizeof(double);

}  // namespace

RankCounters::RankCounters() : tensor_(at::zeros({kNumbers}, at::kDouble)) {}

void RankCounters::note(const parallel::Replica& replica) {
  Counters counters{.optimizer_steps = static_cast<double>(replica.optimizer.steps_done())};
  if (replica.loss_scale != nullptr) {
    const auto [value, good_steps, skipped] = replica.loss_scale->state();
    counters.loss_scale = value;
    counters.good_steps = good_steps;
    counters.skipped = skipped;
  }
  std::memcpy(tensor_.data_ptr(), &counters, sizeof counters);
}

void RankCounters::restore(const parallel::Replica& replica) const {
  Counters counters;
  std::memcpy(&counters, tensor_.data_ptr(), sizeof counters);
  replica.optimizer.set_steps_done(std::llround(counters.optimizer_steps));
  if (replica.loss_scale == nullptr) return;
  replica.loss_scale->restore(
      {.value = counters.loss_scale, .good_steps = counters.good_steps, .skipped = counters.skipped});
}

}  // namespace syncopate::train
