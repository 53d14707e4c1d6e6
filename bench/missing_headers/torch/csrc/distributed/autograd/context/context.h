#pragma once
// Debian's libtorch-dev leaves this header out although c10d/reducer.hpp includes it; the reducer needs only
// the name and that of a callback.
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {
class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(at::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;
}  // namespace torch::distributed::autograd
