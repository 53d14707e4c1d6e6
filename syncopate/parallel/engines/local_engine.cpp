#include "syncopate/parallel/engines/local_engine.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "syncopate/parallel/engines/block_chain.h"
#include "syncopate/tensor/half_weights.h"

namespace syncopate::parallel {

Gradients LocalEngine::run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                           const EngineEvents& events) {
  const auto phase = [&](const char* name) {
    if (events.phase) events.phase(name);
  };
  Gradients made;
  const at::Device device = replica.params.values.device();
  replica.refresh_half();
  for (const tensor::Batch& batch : micro) {
    for (tensor::RowUse& use : replica.model.rows_used(batch)) made.rows.push_back(std::move(use));
  }
  LocalLoss& total = made.loss;
  const size_t rounds = std::max<size_t>(1, micro.size());
  for (size_t i = 0; i < rounds; ++i) {
    std::optional<BlockChain> chain;
    const tensor::HalfWeights half_weights(replica.params);
    if (i < micro.size()) {
      phase("forward");
      const Trace::Span span(replica.trace, Trace::Lane::kCompute, "forward", static_cast<int64_t>(i));
      chain.emplace(replica.model,
                    ChainOptions{.mode = {.training = true, .noise_key = noise_key},
                                 .precision = replica.precision,
                                 .device = device,
                                 .recompute = options_.recompute},
                    device.is_cpu() ? micro[i] : micro[i].with_noise(noise_key).to(device));
      const tensor::Loss loss = chain->loss();
      total.sum += loss.sum.item<double>();
      total.count += loss.count;
      total.of_replica = total.count;
    }
    if (events.before_backward) events.before_backward(total, made.rows, i + 1 == rounds);
    phase("backward");
    const Trace::Span span(replica.trace, Trace::Lane::kCompute, "backward", static_cast<int64_t>(i));
    if (chain) chain->backward_from_loss(replica.loss_scale != nullptr ? replica.loss_scale->value() : 1);
  }
  return made;
}

}  // namespace syncopate::parallel
