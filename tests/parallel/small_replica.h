#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "syncopate/base/rng.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::test {

/// A small BERT and what trains it; its gradients are set, not computed.
struct SmallReplica {
  explicit SmallReplica(uint64_t seed, const optim::OptimizerOptions& options = {},
                        std::optional<c10::Device> device = std::nullopt)
      : SmallReplica(make(seed), options, device) {}

  explicit SmallReplica(std::unique_ptr<nn::Model> made, const optim::OptimizerOptions& options = {},
                        std::optional<c10::Device> device = std::nullopt)
      : model(std::move(made)),
        params(model->parameters(), device),
        optimizer(optim::make_optimizer(options, params)),
        replica{.model = *model, .params = params, .optimizer = *optimizer} {}

  void step(parallel::Strategy& strategy) { last = strategy.step(replica, context); }
  void apply() { last = replica.apply(context); }

  /// A gradient that differs in every element and for every number.
  void set_gradient(int64_t number) {
    Rng rng(mix_key(7, number));
    params.grads.zero_();
    for (const auto& entry : params.entries()) {
      const at::Tensor grad = at::empty({entry.size});
      for (int64_t i = 0; i < grad.numel(); ++i)
        grad.data_ptr<float>()[i] = static_cast<float>(rng.uniform() - 0.5);
      params.grad_of(entry).copy_(grad);
    }
  }

  static nn::BertConfig config() {
    nn::BertConfig config;
    config.vocab_size = 40;
    config.hidden = 8;
    config.layers = 1;
    config.heads = 2;
    config.ffn = 16;
    config.max_positions = 8;
    config.num_labels = 3;
    config.set_dropout(0);
    return config;
  }

  static std::unique_ptr<nn::Model> make(uint64_t seed) { return nn::make_bert(config(), seed); }

  std::unique_ptr<nn::Model> model;
  tensor::FlatParams params;
  std::unique_ptr<optim::Optimizer> optimizer;
  parallel::Replica replica;
  parallel::StepContext context{.lr = 1e-2};
  parallel::Update last;  ///< what became of the last step
};

}  // namespace syncopate::test
