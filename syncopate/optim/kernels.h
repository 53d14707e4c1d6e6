#pragma once

#include <cstdint>

namespace syncopate::optim {

/// Constants of one AdamW or LAMB update, the same for every element.
struct AdamWPass {
  float keep1, take1, keep2, take2;
  float step_size;        ///< lr / (1 - beta1^t); LAMB: 1 / (1 - beta1^t)
  float root_correction;  ///< 1 / sqrt(1 - beta2^t)
  float eps;
  float grad_scale;
};

struct SgdPass {
  float keep;
  float lr_grad;  ///< Nesterov's alone
  float lr_momentum;
  float grad_scale;
};

/// Elementwise updates of `count` elements.
void adamw_pass(const AdamWPass& pass, float shrink, float* values, const float* grads, float* first,
                float* second, int64_t count);
void sgd_pass(const SgdPass& pass, float pull, float* values, const float* grads, float* momentum,
              int64_t count);
void nesterov_pass(const SgdPass& pass, float pull, float* values, const float* grads, float* momentum,
                   int64_t count);

/// LAMB in two passes, since the step of a tensor depends on the norm of its whole update: the first brings
/// the moments up to date and returns the sum of squares of the update, the second computes the update again
/// and takes it.
double lamb_moments(const AdamWPass& pass, float pull, const float* values, const float* grads, float* first,
                    float* second, int64_t count);
void lamb_take(const AdamWPass& pass, float pull, float rate, float* values, const float* first,
               const float* second, int64_t count);

/// LARS: m = keep m + rate (scale g + pull x); x -= m.
struct LarsPass {
  float keep, rate, pull, grad_scale;
};
void lars_pass(const LarsPass& pass, float* values, const float* grads, float* momentum, int64_t count);

/// Sum of squares in double, over fixed blocks whose sums are added in order: any number of threads, the same
/// bits.
double sum_of_squares(const float* data, int64_t count);

}  // namespace syncopate::optim
