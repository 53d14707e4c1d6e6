#pragma once

#include <cstdint>

namespace syncopate::optim {

/// Constants of one AdamW update, the same for every element.
struct AdamWPass {
  float keep1, take1, keep2, take2;
  float step_size;        ///< lr / (1 - beta1^t)
  float root_correction;  ///< 1 / sqrt(1 - beta2^t)
  float eps;
  float grad_scale;
};

struct SgdPass {
  float keep, lr, grad_scale;
};

/// Elementwise updates of `count` elements.
void adamw_pass(const AdamWPass& pass, float shrink, float* values, const float* grads, float* first,
                float* second, int64_t count);
void sgd_pass(const SgdPass& pass, float pull, float* values, const float* grads, float* momentum,
              int64_t count);

/// Sum of squares in double, over fixed blocks whose sums are added in order: any number of threads, the same
/// bits.
double sum_of_squares(const float* data, int64_t count);

}  // namespace syncopate::optim
