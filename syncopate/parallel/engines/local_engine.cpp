#include "syncopate/parallel/engines/local_engine.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace syncopate::parallel {
namespace {

tensor::Loss loss_of(Replica& replica, const tensor::Batch& batch) {
  const tensor::Autocast autocast(replica.precision, replica.params.values.device());
  return replica.model.loss(replica.model.forward(batch), batch);
}

}  // namespace

Gradients LocalEngine::run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                           const EngineEvents& events) {
  const auto phase = [&](const char* name) {
    if (events.phase) events.phase(name);
  };
  Gradients made;
  const at::Device device = replica.params.values.device();
  for (const tensor::Batch& batch : micro) {
    for (tensor::RowUse& use : replica.model.rows_used(batch)) made.rows.push_back(std::move(use));
  }
  LocalLoss& total = made.loss;
  const size_t rounds = std::max<size_t>(1, micro.size());
  for (size_t i = 0; i < rounds; ++i) {
    at::Tensor sum;
    if (i < micro.size()) {
      phase("forward");
      replica.model.set_mode({.training = true, .noise_key = noise_key});
      const tensor::Loss loss = loss_of(replica, device.is_cpu() ? micro[i] : micro[i].to(device));
      sum = loss.sum;
      total.sum += sum.item<double>();
      total.count += loss.count;
      if (replica.loss_scale != nullptr) sum = sum * replica.loss_scale->value();
    }
    if (events.before_backward) events.before_backward(total, made.rows, i + 1 == rounds);
    phase("backward");
    if (sum.defined()) sum.backward();
  }
  return made;
}

}  // namespace syncopate::parallel
