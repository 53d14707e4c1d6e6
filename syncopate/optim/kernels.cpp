#include "syncopate/optim/kernels.h"

#include <cmath>

// These loops wait for memory, not for arithmetic: the baseline's vectors serve every CPU, and the same
// instructions everywhere give the same bits everywhere. The build gives this file -O3 -fno-math-errno.

namespace syncopate::optim {

void adamw_pass(const AdamWPass& pass, float shrink, float* __restrict values, const float* __restrict grads,
                float* __restrict first, float* __restrict second, int64_t count) {
  const AdamWPass p = pass;
  for (int64_t i = 0; i < count; ++i) {
    const float grad = grads[i] * p.grad_scale;
    const float m = p.keep1 * first[i] + p.take1 * grad;
    const float v = p.keep2 * second[i] + p.take2 * grad * grad;
    first[i] = m;
    second[i] = v;
    values[i] = values[i] * shrink - p.step_size * m / (std::sqrt(v) * p.root_correction + p.eps);
  }
}

void sgd_pass(const SgdPass& pass, float pull, float* __restrict values, const float* __restrict grads,
              float* __restrict momentum, int64_t count) {
  const SgdPass p = pass;
  for (int64_t i = 0; i < count; ++i) {
    const float grad = grads[i] * p.grad_scale + pull * values[i];
    const float moved = p.keep * momentum[i] + grad;
    momentum[i] = moved;
    values[i] -= p.lr_momentum * moved;
  }
}

void nesterov_pass(const SgdPass& pass, float pull, float* __restrict values, const float* __restrict grads,
                   float* __restrict momentum, int64_t count) {
  const SgdPass p = pass;
  for (int64_t i = 0; i < count; ++i) {
    const float grad = grads[i] * p.grad_scale + pull * values[i];
    const float moved = p.keep * momentum[i] + grad;
    momentum[i] = moved;
    values[i] -= p.lr_grad * grad + p.lr_momentum * moved;
  }
}

double lamb_moments(const AdamWPass& pass, float pull, const float* __restrict values,
                    const float* __restrict grads, float* __restrict first, float* __restrict second,
                    int64_t count) {
  constexpr int64_t kPiece = 512;  // the updates stay in the cache until their squares are summed
  const AdamWPass p = pass;
  float updates[kPiece];
  double sum = 0;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t end = begin + kPiece < count ? begin + kPiece : count;
    for (int64_t i = begin; i < end; ++i) {
      const float grad = grads[i] * p.grad_scale;
      const float m = p.keep1 * first[i] + p.take1 * grad;
      const float v = p.keep2 * second[i] + p.take2 * grad * grad;
      first[i] = m;
      second[i] = v;
      updates[i - begin] = p.step_size * m / (std::sqrt(v) * p.root_correction + p.eps) + pull * values[i];
    }
    sum += sum_of_squares(updates, end - begin);
  }
  return sum;
}

void lamb_take(const AdamWPass& pass, float pull, float rate, float* __restrict values,
               const float* __restrict first, const float* __restrict second, int64_t count) {
  const AdamWPass p = pass;
  for (int64_t i = 0; i < count; ++i) {
    const float update =
        p.step_size * first[i] / (std::sqrt(second[i]) * p.root_correction + p.eps) + pull * values[i];
    values[i] -= rate * update;
  }
}

void lars_pass(const LarsPass& pass, float* __restrict values, const float* __restrict grads,
               float* __restrict momentum, int64_t count) {
  const LarsPass p = pass;
  for (int64_t i = 0; i < count; ++i) {
    const float grad = grads[i] * p.grad_scale + p.pull * values[i];
    const float moved = p.keep * momentum[i] + p.rate * grad;
    momentum[i] = moved;
    values[i] -= moved;
  }
}

double sum_of_squares(const float* data, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = data[i + lane];
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(data[i]) * data[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace syncopate::optim
