#include "syncopate/parallel/replica.h"

#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/optim/clip.h"

namespace syncopate::parallel {

void Replica::apply() {
  const Stopwatch watch;
  double scale = 1 / count;
  gradient_norm = 0;
  if (loss_scale != nullptr) scale /= loss_scale->value();
  if (clip > 0 || loss_scale != nullptr) gradient_norm = optim::gradient_norm(params.grads, scale);
  if (loss_scale != nullptr && !std::isfinite(gradient_norm) && loss_scale->value() > 1) {
    loss_scale->overflowed();
    gradient_norm = 0;
  } else if (std::isfinite(gradient_norm)) {  // else the run diverged: the caller sees it by the norm
    if (loss_scale != nullptr) loss_scale->succeeded();
    optimizer.step(params, lr, scale * optim::clip_factor(gradient_norm, clip));
  }
  apply_seconds += watch.seconds();
}

}  // namespace syncopate::parallel
