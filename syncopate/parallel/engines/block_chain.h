#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "syncopate/nn/model.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::parallel {

/// How a chain computes.
struct ChainOptions {
  nn::Mode mode;
  tensor::Precision precision = tensor::Precision::kFp32;
  c10::Device device = c10::kCPU;  ///< where the model and the batch are
  /// Keeps only what enters each layer; a layer's forward pass is made once more right before its backward
  /// pass. A model's last layer keeps what it computed: its backward pass comes first, and much of its work
  /// is done with the loss. Losses and gradients are the same, bit for bit.
  bool recompute = false;
};

/// One micro-batch on its way through layers of a model: the forward pass when it is made, the backward pass
/// later. Several may be under way, each with a batch of its own; the model must outlive them. Gradients are
/// added to those of the parameters. A parameter that two of the layers share gets one gradient, when both
/// parts of it are known: who waits for gradients is told once. Under `recompute` a model whose forward pass
/// talks to other ranks talks twice.
class BlockChain {
 public:
  /// Sets the model's mode and runs `layers` on `hidden` (undefined where they begin with layer 0) and
  /// `batch`.
  BlockChain(nn::Model& model, const ChainOptions& options, at::Tensor hidden, tensor::Batch batch,
             nn::LayerRange layers);
  /// All layers.
  BlockChain(nn::Model& model, const ChainOptions& options, tensor::Batch batch)
      : BlockChain(model, options, {}, std::move(batch), {0, model.depth()}) {}
  BlockChain(BlockChain&&) = default;
  BlockChain& operator=(BlockChain&&) = delete;

  /// What came out, without its history; once, so that it does not outlive its use. Undefined for a model
  /// whose loss does it all.
  at::Tensor take_output() { return std::move(output_); }
  /// The model's loss on that, where the layers end with the last one. Its sum comes without its history.
  tensor::Loss loss();

  /// The backward pass, once: from the gradient of the output. Returns that of `hidden`, undefined where that
  /// was. What was kept is freed on the way.
  at::Tensor backward(const at::Tensor& output_grad);
  /// The same from the loss, which must have been asked for, times `scale`.
  at::Tensor backward_from_loss(double scale = 1);
  at::Tensor backward_from_loss(const at::Tensor& scale);  ///< a number where the loss is

 private:
  /// Layers that are differentiated at once.
  struct Link {
    nn::LayerRange layers;
    at::Tensor entered{};  ///< a leaf; undefined for layer 0
    at::Tensor left{};     ///< with its history; undefined where that is not kept
  };
  /// A parameter of layer 0 and the leaf that the last layer reads in its place.
  struct Tied {
    at::Tensor parameter, leaf;
  };
  /// While it lives, the last layer and the loss read these leaves.
  class StandIns;

  at::Tensor run(const Link& link, bool again);
  at::Tensor differentiate(const Link& link, const at::Tensor& end, const at::Tensor& grad);

  nn::Model* model_;
  ChainOptions options_;
  tensor::Batch batch_;
  std::vector<Link> links_;
  std::vector<Tied> tied_;  ///< only where the two are differentiated one after the other
  at::Tensor output_, loss_;
};

}  // namespace syncopate::parallel
