#pragma once

#include <ATen/core/Tensor.h>

namespace syncopate::optim {

/// The Euclidean norm of the whole flat gradient, as if it were multiplied by `scale`; of any floating type,
/// on any device (for which it waits).
double gradient_norm(const at::Tensor& flat, double scale);

/// The factor that brings a gradient of this norm to at most `limit`; 1 when it is below, or when limit is 0
/// (off).
double clip_factor(double norm, double limit);

}  // namespace syncopate::optim
