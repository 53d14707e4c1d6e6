#include "syncopate/nn/example_noise.h"

#include <ATen/ATen.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/feature_dropout_native.h>
#include <torch/library.h>

#include <utility>

#include "syncopate/base/rng.h"
#include "syncopate/nn/layers/drop.h"

namespace syncopate::nn {
namespace {

thread_local ExampleNoise* current = nullptr;

bool applies(const at::Tensor& x, double rate, bool training) {
  return current != nullptr && training && rate > 0 && rate < 1 && x.dim() > 0 && x.numel() > 0 &&
         x.is_floating_point();
}

Noise next_noise(double rate, int64_t leading, int64_t inner) {
  Noise noise = make_noise(current->next_place(), rate);
  noise.rows = current->rows(leading, inner);
  return noise;
}

at::Tensor dropped(const at::Tensor& x, double rate) {
  if (x.dim() == 1) return dropped(x.unsqueeze(1), rate).squeeze(1);  // one number of each example
  return drop(x.contiguous(), next_noise(rate, x.size(0), x.numel() / x.size(0) / x.size(-1)));
}

/// Whole channels [B, C, ...] of each example.
at::Tensor channel_factors(const at::Tensor& x, double rate) {
  const Noise noise = next_noise(rate, x.size(0), 1);
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return noise_factors(noise, x.size(0), x.size(1), x.options().requires_grad(false)).view(shape);
}

// Torch calls these instead of its own; outside of a region they are its own.

at::Tensor dropout(const at::Tensor& x, double rate, bool training) {
  return applies(x, rate, training) ? dropped(x, rate) : at::native::dropout(x, rate, training);
}

at::Tensor& dropout_in_place(at::Tensor& x, double rate, bool training) {
  if (!applies(x, rate, training)) return at::native::dropout_(x, rate, training);
  return x.mul_(dropped(at::ones_like(x, x.options().requires_grad(false)), rate));
}

at::Tensor feature_dropout(const at::Tensor& x, double rate, bool training) {
  if (!applies(x, rate, training) || x.dim() < 2) return at::native::feature_dropout(x, rate, training);
  return x * channel_factors(x, rate);
}

at::Tensor& feature_dropout_in_place(at::Tensor& x, double rate, bool training) {
  if (!applies(x, rate, training) || x.dim() < 2) return at::native::feature_dropout_(x, rate, training);
  return x.mul_(channel_factors(x, rate));
}

TORCH_LIBRARY_IMPL(aten, AutogradCPU, library) {
  library.impl("dropout", dropout);
  library.impl("dropout_", dropout_in_place);
  library.impl("feature_dropout", feature_dropout);
  library.impl("feature_dropout_", feature_dropout_in_place);
}

}  // namespace

ExampleNoise::ExampleNoise(uint64_t key, std::span<const int64_t> ids, c10::Device device)
    : key_(key), ids_(ids.begin(), ids.end()), outer_(std::exchange(current, this)) {
  seed_device_noise(device, key, ids);
}

ExampleNoise::~ExampleNoise() { current = outer_; }

uint64_t ExampleNoise::next_place() { return mix_key(key_, places_++); }

NoiseRows ExampleNoise::rows(int64_t leading, int64_t inner) const {
  const auto examples = static_cast<int64_t>(ids_.size());
  if (examples > 0 && leading % examples == 0) return rows_of(ids_, leading / examples * inner);
  const int64_t first = ids_.empty() ? 0 : ids_.front();
  return rows_of({&first, 1}, leading * inner);
}

}  // namespace syncopate::nn
