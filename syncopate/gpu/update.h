#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "syncopate/gpu/graph.h"
#include "syncopate/tensor/flat_params.h"

// The update of flat parameters on a GPU, without the host waiting for anything.
namespace syncopate::gpu {

struct AdamWStep {
  double beta1 = 0, beta2 = 0, eps = 0;
  double step_size = 0;        ///< the rate over the first mean's bias correction
  double root_correction = 1;  ///< 1 / the root of the second's
  double shrink = 1;           ///< of what decays
};
/// One update with `grads * factor` (a float on the device), of `params.half`, too, if there is one. A factor
/// that is no number changes nothing.
void adamw(tensor::FlatParams& params, const at::Tensor& first, const at::Tensor& second,
           const at::Tensor& factor, const AdamWStep& step);

/// params.half = params.values, rounded.
void refresh_half(tensor::FlatParams& params);

/// The gradient's norm and what to multiply it by, on the device.
class Clip {
 public:
  explicit Clip(c10::Device device);
  /// Computes the norm of `scale * grads`, and the factor that makes it `limit` at most (0: as it is).
  void measure(const at::Tensor& grads, double scale, double limit);
  void set_factor(double factor);
  const at::Tensor& factor() const { return factor_; }
  double norm();  ///< of the last measurement: waits until the device has it

 private:
  at::Tensor partial_, norm_, host_norm_, factor_;
  Mark known_;
};

}  // namespace syncopate::gpu
