#include "syncopate/parallel/replica.h"

#include "syncopate/base/clock.h"
#include "syncopate/optim/clip.h"

namespace syncopate::parallel {

void Replica::apply() {
  const Stopwatch watch;
  double scale = 1 / count;
  gradient_norm = 0;
  if (clip > 0) {
    gradient_norm = optim::gradient_norm(params.grads, scale);
    scale *= optim::clip_factor(gradient_norm, clip);
  }
  optimizer.step(params, lr, scale);
  apply_seconds += watch.seconds();
}

}  // namespace syncopate::parallel
