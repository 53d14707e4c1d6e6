#pragma once

#include <ATen/core/Tensor.h>

namespace syncopate::optim {

struct OuterOptions {
  double lr = 0.7;
  double momentum = 0.9;
  bool nesterov = true;
};

/// The outer optimizer of a model that several workers train separately. Its gradient is the common starting
/// point minus the mean of the workers' parameters. Nesterov's momentum gives DiLoCo (Douillard et al.,
/// 2023), plain momentum the block momentum of BMUF (Chen and Huo, 2016), none at a rate of 1 the workers'
/// mean.
class Outer {
 public:
  explicit Outer(const OuterOptions& options);  ///< throws ConfigError
  bool has_momentum() const { return options_.momentum > 0; }
  /// m = momentum m + g; x -= lr (g + momentum m), or lr m without Nesterov. `momentum` begins at zero and
  /// may be undefined without one.
  void step(at::Tensor values, at::Tensor momentum, const at::Tensor& gradient) const;

 private:
  OuterOptions options_;
};

}  // namespace syncopate::optim
