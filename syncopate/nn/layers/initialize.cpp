#include "syncopate/nn/layers/initialize.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "syncopate/base/rng.h"
#include "syncopate/tensor/parallel.h"

namespace syncopate::nn {
namespace {

constexpr int64_t kChunk = 4096;  // each draws from a stream of its own, so that threads do not matter

template <typename Draw>
void fill_by_chunks(const at::Tensor& tensor, uint64_t key, const Draw& draw) {
  const at::NoGradGuard no_grad;
  at::Tensor values = at::empty(tensor.sizes(), at::kFloat);
  float* out = values.data_ptr<float>();
  const int64_t size = values.numel();
  tensor::parallel_for(0, (size + kChunk - 1) / kChunk, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      Rng rng(mix_key(key, chunk));
      const int64_t begin = chunk * kChunk;
      draw(rng, out + begin, std::min(size - begin, kChunk));
    }
  });
  tensor.detach().copy_(values);
}

}  // namespace

at::Tensor parameter(at::IntArrayRef shape) { return at::empty(shape, at::kFloat).set_requires_grad(true); }

void fill_normal(const at::Tensor& tensor, double deviation, uint64_t key) {
  fill_by_chunks(tensor, key, [deviation](Rng& rng, float* out, int64_t count) {
    for (int64_t i = 0; i < count; i += 2) {
      const double radius = deviation * std::sqrt(-2.0 * std::log(1.0 - rng.uniform()));
      const double angle = 2.0 * std::numbers::pi * rng.uniform();
      out[i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < count) out[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
}

void fill_uniform(const at::Tensor& tensor, double bound, uint64_t key) {
  fill_by_chunks(tensor, key, [bound](Rng& rng, float* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(bound * (2 * rng.uniform() - 1));
  });
}

}  // namespace syncopate::nn
