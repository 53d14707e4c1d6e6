#include "syncopate/parallel/replica.h"

#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/optim/clip.h"

namespace syncopate::parallel {

double Replica::mean_scale() const {
  return loss_scale != nullptr ? 1 / count / loss_scale->value() : 1 / count;
}

bool Replica::accept(double norm) {
  gradient_norm = norm;
  const bool finite = std::isfinite(norm);  // otherwise the run diverged: the caller sees it by the norm
  if (loss_scale == nullptr) return finite;
  if (!finite && loss_scale->value() > 1) {
    loss_scale->overflowed();
    gradient_norm = 0;
    return false;
  }
  if (finite) loss_scale->succeeded();
  return finite;
}

std::optional<double> Replica::update_scale() {
  if (count == 0) {  // nothing to learn from
    gradient_norm = 0;
    return std::nullopt;
  }
  const double scale = mean_scale();
  const bool need_norm = clip > 0 || loss_scale != nullptr;
  if (!accept(need_norm ? optim::gradient_norm(params.grads, scale) : 0)) return std::nullopt;
  return scale * optim::clip_factor(gradient_norm, clip);
}

void Replica::apply() {
  const Stopwatch watch;
  if (const auto scale = update_scale()) optimizer.step(params, lr, *scale);
  apply_seconds += watch.seconds();
}

}  // namespace syncopate::parallel
