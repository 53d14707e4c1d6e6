#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/tensor/flat_params.h"

namespace syncopate::optim {

struct OptimizerOptions {
  std::string kind = "adamw";  ///< adamw, sgd, lamb or lars
  double weight_decay = 0.01;  ///< on matrices and tables; never on biases and norms
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;  ///< sgd and lars
  bool nesterov = false;  ///< sgd: Nesterov momentum
  double trust = 0.001;   ///< lars: how far a tensor moves, in units of its own norm, at a rate of 1
  bool plain = false;     ///< ATen's operations even where our own could run: for comparison
};

/// Turns gradients into new parameters, in one pass over the flat arrays: by kernels of our own for fp32 on
/// the CPU, by ATen's operations for any other device or type (without waiting for the device). What is kept
/// between steps is in fp32 at least.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update with `grads * grad_scale` as the gradient. The scale carries 1/count and clipping, so that
  /// neither costs a pass of its own.
  virtual void step(tensor::FlatParams& params, double lr, double grad_scale) = 0;
  /// The same where a device can do it all: the gradient is clipped to norm `limit` (0: it is not) without
  /// the host knowing its norm before. Returns the norm of the scaled gradient, 0 where nothing is clipped;
  /// if it is no number, nothing was updated. Nothing: it cannot, nothing was done.
  virtual std::optional<double> step_clipped(tensor::FlatParams& /*params*/, double /*lr*/,
                                             double /*grad_scale*/, double /*limit*/) {
    return std::nullopt;
  }
  /// Whether `step_part` can be called: the gradient is read from `params.summed()`, element by element, and
  /// the tensors of `state` are those that are used, also once they lie elsewhere.
  virtual bool updates_parts(const tensor::FlatParams& /*params*/) const { return false; }
  /// What `step` does to elements begin..end-1: ranks that keep one copy of the parameters share a step out.
  virtual void step_part(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin,
                         int64_t end);
  /// What a checkpoint must hold beside the parameters, to be written into in place when resuming.
  virtual std::vector<tensor::NamedTensor> state() const = 0;
  virtual int64_t steps_done() const = 0;
  virtual void set_steps_done(int64_t steps) = 0;
};

std::vector<std::string> optimizer_names();
/// Whether the optimizer looks at whole tensors (their norms), so that no tensor may be cut.
bool needs_whole_tensors(const std::string& kind);
/// Throws ConfigError.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, const tensor::FlatParams& params);

}  // namespace syncopate::optim
