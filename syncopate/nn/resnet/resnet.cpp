#include "syncopate/nn/resnet/resnet.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/layers/show.h"
#include "syncopate/tensor/image_levels.h"

namespace syncopate::nn {

ResNet::Unit ResNet::unit(std::string convolution, std::string norm, int64_t in, int64_t out, int64_t kernel,
                          int64_t stride) {
  return {std::move(convolution),
          std::move(norm),
          parameter({out, in, kernel, kernel}),
          {parameter({out}), parameter({out}), at::zeros({out}), at::ones({out})},
          stride};
}

ResNet::ResNet(const ResNetConfig& config) : config_(config) {
  config_.validate();
  int64_t in = config_.widths.front();
  stem_ = unit("conv1", "bn1", config_.channels, in, 3, 1);
  for (size_t stage = 0; stage < config_.widths.size(); ++stage) {
    const int64_t out = config_.widths[stage];
    for (int64_t i = 0; i < config_.blocks; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string name = fmt::format("layer{}.{}.", stage + 1, i);
      Block block{unit(name + "conv1", name + "bn1", in, out, 3, stride),
                  unit(name + "conv2", name + "bn2", out, out, 3, 1),
                  {}};
      if (stride != 1 || in != out) {
        block.shortcut.push_back(unit(name + "downsample.0", name + "downsample.1", in, out, 1, stride));
      }
      blocks_.push_back(std::move(block));
      in = out;
    }
  }
  head_ = {parameter({config_.num_labels, in}), parameter({config_.num_labels})};
}

std::vector<const ResNet::Unit*> ResNet::units(LayerRange range) const {
  std::vector<const Unit*> all;
  if (range.has(0)) all.push_back(&stem_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!range.has(static_cast<int>(i) + 1)) continue;
    all.push_back(&blocks_[i].first);
    all.push_back(&blocks_[i].second);
    for (const Unit& each : blocks_[i].shortcut) all.push_back(&each);
  }
  return all;
}

at::MemoryFormat ResNet::format() const {
  return channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

std::vector<tensor::NamedTensor> ResNet::parameters(LayerRange range) const {
  std::vector<tensor::NamedTensor> all;
  for (const Unit* each : units(range)) {
    all.push_back({each->convolution + ".weight", each->weight_OIKK});
    all.push_back({each->norm + ".weight", each->params.weight});
    all.push_back({each->norm + ".bias", each->params.bias});
  }
  if (range.has(depth() - 1)) {
    all.push_back({"fc.weight", head_.weight});
    all.push_back({"fc.bias", head_.bias});
  }
  return all;
}

std::vector<tensor::NamedTensor> ResNet::buffers(LayerRange range) const {
  std::vector<tensor::NamedTensor> all;
  for (const Unit* each : units(range)) {
    all.push_back({each->norm + ".running_mean", each->params.running_mean});
    all.push_back({each->norm + ".running_var", each->params.running_var});
  }
  return all;
}

void ResNet::name_labels(std::vector<std::string> names) {
  check(static_cast<int64_t>(names.size()) == config_.num_labels, "one name per label");
  config_.labels = std::move(names);
}

void ResNet::set_label_smoothing(double share) {
  if (!(share >= 0 && share < 1)) {
    throw ConfigError("label smoothing must be at least 0 and below 1, got {}", share);
  }
  smoothing_ = share;
}

at::Tensor ResNet::convolve(const Unit& unit, const at::Tensor& x_BCHW) const {
  return nn::convolve(x_BCHW, unit.weight_OIKK, unit.stride, unit.weight_OIKK.size(2) / 2);
}

BatchNormOptions ResNet::norm_options() const {
  return {.training = mode_.training, .again = mode_.again, .sum = sum_};
}

Twice ResNet::run(const Block& block, const Twice& x_BCHW) const {
  const at::Tensor inner_BCHW =
      batch_norm_relu(convolve(block.first, x_BCHW.one), block.first.params, norm_options());
  const at::Tensor second_BCHW = convolve(block.second, inner_BCHW);
  if (block.shortcut.empty())
    return batch_norm_relu_twice(second_BCHW, block.second.params, norm_options(), x_BCHW.other);
  const Unit& shortcut = block.shortcut.front();
  const at::Tensor added_BCHW = batch_norm(convolve(shortcut, x_BCHW.other), shortcut.params, norm_options());
  return batch_norm_relu_twice(second_BCHW, block.second.params, norm_options(), added_BCHW);
}

at::Tensor ResNet::shown(const Batch& batch) const {
  const at::Tensor& images_BCHW = batch.at("images");
  if (images_BCHW.scalar_type() != at::kByte) return images_BCHW.to(stem_.weight_OIKK.scalar_type());
  if (!levels_CL_.defined() || levels_CL_.device() != images_BCHW.device())
    levels_CL_ = tensor::image_levels(config_.mean, config_.std).to(images_BCHW.device());
  return show(images_BCHW, batch.at("views"), levels_CL_);
}

Twice ResNet::run_stem(const Batch& batch) const {
  const at::Tensor& images_BCHW = batch.at("images");
  if (images_BCHW.dim() != 4 || images_BCHW.size(1) != config_.channels) {
    throw DataError("a batch has images of shape [{}] but the model takes {} channels of rows of pixels",
                    fmt::join(images_BCHW.sizes(), ", "), config_.channels);
  }
  // Of images with one channel either layout is both, and a convolution gives what it likes.
  const at::Tensor seen_BCHW = shown(batch);
  const at::Tensor laid_BCHW =
      reads_any_layout(seen_BCHW, stem_.weight_OIKK) ? seen_BCHW : seen_BCHW.contiguous(format());
  const at::Tensor y_BCHW = convolve(stem_, laid_BCHW).contiguous(format());
  return batch_norm_relu_twice(y_BCHW, stem_.params, norm_options());
}

at::Tensor ResNet::forward(at::Tensor hidden, const Batch& batch, LayerRange range) {
  check(0 <= range.first && range.first <= range.last && range.last <= depth(),
        "a range of layers the model lacks");
  Twice made{hidden, hidden};
  for (int i = range.first; i < range.last; ++i) {
    if (i == 0) {
      made = run_stem(batch);
    } else if (i + 1 < depth()) {
      made = run(blocks_[static_cast<size_t>(i - 1)], made);
    } else {
      return at::linear(made.one.mean({2, 3}), head_.weight, head_.bias);
    }
  }
  return made.one;
}

Loss ResNet::loss(const at::Tensor& logits, const Batch& batch) const {
  return cross_entropy(logits, batch.at("labels"), mode_.training ? smoothing_ : 0.0);
}

int64_t ResNet::count(const Batch& batch) const { return labels_asked(batch.at("labels")); }

at::Tensor ResNet::empty_hidden(const Batch& batch, int layer) const {
  check(0 < layer && layer < depth() - 1, "a layer that no block comes before");
  const at::Tensor& images_BCHW = batch.at("images");
  const auto before = static_cast<size_t>(layer - 1);  // blocks
  const int64_t C = config_.widths[before == 0 ? 0 : (before - 1) / static_cast<size_t>(config_.blocks)];
  int64_t H = images_BCHW.size(2), W = images_BCHW.size(3);
  for (size_t i = 0; i < before; ++i) {
    H = (H - 1) / blocks_[i].first.stride + 1;
    W = (W - 1) / blocks_[i].first.stride + 1;
  }
  return at::empty({images_BCHW.size(0), C, H, W}, images_BCHW.options().dtype(at::kFloat), format());
}

void ResNet::initialize(uint64_t seed) {
  uint64_t number = 0;
  for (const Unit* each : units({0, depth()})) {
    const at::Tensor& weight = each->weight_OIKK;
    const auto inputs = static_cast<double>(weight.size(1) * weight.size(2) * weight.size(3));
    fill_uniform(weight, 1 / std::sqrt(inputs), mix_key(seed, number++));
    each->params.weight.detach().fill_(1);
    each->params.bias.detach().zero_();
    each->params.running_mean.zero_();
    each->params.running_var.fill_(1);
  }
  initialize_head(mix_key(seed, number));
}

void ResNet::initialize_head(uint64_t seed) {
  const double bound = 1 / std::sqrt(static_cast<double>(head_.weight.size(1)));
  fill_uniform(head_.weight, bound, mix_key(seed, 1));
  fill_uniform(head_.bias, bound, mix_key(seed, 2));
}

std::unique_ptr<ResNet> make_resnet(const ResNetConfig& config, uint64_t seed) {
  auto model = std::make_unique<ResNet>(config);
  model->initialize(seed);
  return model;
}

}  // namespace syncopate::nn
