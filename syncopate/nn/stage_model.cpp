#include "syncopate/nn/stage_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::nn {
namespace {

bool is_among(const std::vector<tensor::NamedTensor>& some, const at::Tensor& tensor) {
  return std::any_of(some.begin(), some.end(),
                     [&](const tensor::NamedTensor& named) { return named.tensor.is_same(tensor); });
}

}  // namespace

StageModel::StageModel(Model& whole, LayerRange layers) : whole_(whole), layers_(layers) {
  const int depth = whole.depth();
  check(0 <= layers.first && layers.first < layers.last && layers.last <= depth,
        "a range of layers the model lacks");
  check((layers.first == 0 || layers.first + 1 < depth) && (layers.last == depth || layers.last + 1 < depth),
        "the last layer goes with the last block");
}

LayerRange StageModel::of_whole(LayerRange layers) const {
  check(0 <= layers.first && layers.first <= layers.last && layers.last <= depth(),
        "a range of layers the stage lacks");
  return {layers_.first + layers.first, layers_.first + layers.last};
}

bool StageModel::owns(const at::Tensor& tensor) const { return is_among(parameters(), tensor); }

std::vector<tensor::NamedTensor> StageModel::borrowed() const {
  return last() && !first() ? whole_.tied() : std::vector<tensor::NamedTensor>();
}

void StageModel::release_others() {
  std::vector<tensor::NamedTensor> kept = borrowed();
  for (auto& own : {parameters(), buffers()}) kept.insert(kept.end(), own.begin(), own.end());
  for (const auto& all : {whole_.parameters(), whole_.buffers()}) {
    for (const auto& [name, tensor] : all) {
      if (is_among(kept, tensor)) continue;
      tensor.set_data(at::empty({0}, tensor.options().requires_grad(false)));
      tensor.mutable_grad().reset();
    }
  }
}

std::vector<tensor::NamedTensor> StageModel::parameters(LayerRange layers) const {
  return whole_.parameters(of_whole(layers));
}

std::vector<tensor::NamedTensor> StageModel::buffers(LayerRange layers) const {
  return whole_.buffers(of_whole(layers));
}

std::vector<tensor::NamedTensor> StageModel::tied() const {
  return last() && first() ? whole_.tied() : std::vector<tensor::NamedTensor>();
}

void StageModel::stand_in_for_tied(std::vector<at::Tensor> tensors) {
  whole_.stand_in_for_tied(std::move(tensors));
}

at::Tensor StageModel::forward(at::Tensor hidden, const Batch& batch, LayerRange layers) {
  return whole_.forward(std::move(hidden), batch, of_whole(layers));
}

Loss StageModel::loss(const at::Tensor& output, const Batch& batch) const {
  check(last(), "only the last stage has a loss");
  return whole_.loss(output, batch);
}

at::Tensor StageModel::empty_hidden(const Batch& batch, int layer) const {
  return whole_.empty_hidden(batch, layers_.first + layer);
}

std::vector<at::Tensor> StageModel::row_tables() const {
  std::vector<at::Tensor> tables = whole_.row_tables();
  std::erase_if(tables, [&](const at::Tensor& table) { return !owns(table); });
  return tables;
}

std::vector<tensor::RowUse> StageModel::rows_used(const Batch& batch) const {
  if (row_tables().empty()) return {};
  std::vector<tensor::RowUse> uses = whole_.rows_used(batch);
  std::erase_if(uses, [&](const tensor::RowUse& use) { return !owns(use.table); });
  return uses;
}

}  // namespace syncopate::nn
