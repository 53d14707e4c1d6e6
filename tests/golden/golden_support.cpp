#include "tests/golden/golden_support.h"

#include <algorithm>
#include <cmath>

namespace syncopate::test {

tensor::Batch batch_of(const std::vector<Example>& examples) {
  size_t longest = 0;
  for (const Example& each : examples) longest = std::max(longest, each.ids.size());
  const auto B = static_cast<int64_t>(examples.size()), L = static_cast<int64_t>(longest);
  tensor::Batch batch;
  for (const char* name : {"input_ids", "token_type_ids", "attention_mask"}) {
    batch.fields[name] = at::zeros({B, L}, at::kLong);
  }
  batch.fields["labels"] = at::zeros({B}, at::kLong);
  for (int64_t b = 0; b < B; ++b) {
    const Example& example = examples[static_cast<size_t>(b)];
    for (int64_t i = 0; i < static_cast<int64_t>(example.ids.size()); ++i) {
      batch.fields["input_ids"][b][i] = example.ids[static_cast<size_t>(i)];
      batch.fields["token_type_ids"][b][i] = example.types[static_cast<size_t>(i)];
      batch.fields["attention_mask"][b][i] = 1;
    }
    batch.fields["labels"][b] = example.label;
    batch.ids.push_back(b);
    batch.real_tokens += static_cast<int64_t>(example.ids.size());
  }
  return batch;
}

void PlainAdamW::step(const std::vector<tensor::NamedTensor>& parameters) {
  ++steps;
  for (const auto& [name, parameter] : parameters) {
    at::Tensor value = parameter.detach();
    at::Tensor grad = parameter.grad();
    if (grad.is_sparse()) grad = grad.to_dense();
    at::Tensor& m = first[name];
    at::Tensor& v = second[name];
    if (!m.defined()) m = at::zeros_like(value);
    if (!v.defined()) v = at::zeros_like(value);
    const bool decays = !name.ends_with("bias") && name.find("LayerNorm") == std::string::npos;
    if (decays || decay_everything) value.mul_(1 - lr * weight_decay);
    m.mul_(beta1).add_(grad, 1 - beta1);
    v.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
    const double step_size = lr / (1 - std::pow(beta1, steps));
    const at::Tensor denominator = v.sqrt().div_(std::sqrt(1 - std::pow(beta2, steps))).add_(eps);
    value.addcdiv_(m, denominator, -step_size);
  }
}

std::map<std::string, at::Tensor> gradients(nn::Model& model, const tensor::Batch& batch) {
  for (const auto& [name, parameter] : model.parameters()) parameter.mutable_grad().reset();
  const tensor::Loss loss = model.loss(model.forward(batch), batch);
  (loss.sum / loss.count).backward();
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, parameter] : model.parameters()) {
    result[name] = parameter.grad().is_sparse() ? parameter.grad().to_dense() : parameter.grad();
  }
  return result;
}

std::vector<double> train(nn::BertClassifier& model, const std::vector<tensor::Batch>& batches,
                          PlainAdamW& adam) {
  std::vector<double> losses;
  for (const tensor::Batch& batch : batches) {
    for (const auto& [name, parameter] : model.parameters()) parameter.mutable_grad().reset();
    const tensor::Loss loss = model.loss(model.forward(batch), batch);
    const at::Tensor mean = loss.sum / loss.count;
    mean.backward();
    adam.step(model.parameters());
    losses.push_back(mean.item<double>());
  }
  return losses;
}

double worst_relative(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return worst;
}

double worst_of_largest(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

}  // namespace syncopate::test
