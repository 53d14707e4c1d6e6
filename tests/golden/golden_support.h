#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/tensor/batch.h"

namespace syncopate::test {

/// One example as a tokenizer leaves it.
struct Example {
  std::vector<int64_t> ids, types;
  int64_t label = 0;
};

/// Padded to the longest, with the mask that says so.
tensor::Batch batch_of(const std::vector<Example>& examples);

/// AdamW as the paper writes it, one tensor at a time: what the fused one must agree with.
struct PlainAdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.1;
  bool decay_everything = false;
  int64_t steps = 0;
  std::map<std::string, at::Tensor> first, second;

  void step(const std::vector<tensor::NamedTensor>& parameters);
};

/// The mean loss of each batch, one optimizer step after each.
std::vector<double> train(nn::BertClassifier& model, const std::vector<tensor::Batch>& batches,
                          PlainAdamW& adam);

/// Gradients of the mean loss, dense, by parameter name; clears what was there.
std::map<std::string, at::Tensor> gradients(nn::Model& model, const tensor::Batch& batch);

/// How far a model is from what is expected of it.
struct Errors {
  double logits, loss;
};

/// The largest |a - b| / b over the list.
double worst_relative(const std::vector<double>& a, const std::vector<double>& b);

/// The largest |a - b| in units of the largest |b|.
double worst_of_largest(const at::Tensor& a, const at::Tensor& b);

}  // namespace syncopate::test
