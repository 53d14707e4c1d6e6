#pragma once

#include "syncopate/nn/kernels/lanes.h"

namespace syncopate::nn::kernels::SYNCOPATE_ISA {

struct GeluOf {
  Floats value, slope;
};

/// The exact one: x times the normal distribution up to x.
SYNCOPATE_INLINE GeluOf exact_gelu(Floats x) {
  const Normal normal = normal_of(x);
  return {x * normal.sum, normal.sum + x * normal.bell * 0x1.988454p-2f};  // 1 / sqrt(2 pi)
}

SYNCOPATE_INLINE GeluOf tanh_gelu(Floats x) {
  constexpr float kRoot = 0x1.988454p-1f;  // sqrt(2 / pi)
  const Tanh t = tanh_of((x + x * x * x * 0.044715f) * kRoot);
  const Floats inner_slope = (x * x * (3 * 0.044715f) + 1.0f) * kRoot;
  return {x * 0.5f * (t.value + 1.0f), (t.value + 1.0f) * 0.5f + x * 0.5f * t.slope * inner_slope};
}

template <bool kTanh>
SYNCOPATE_INLINE GeluOf gelu_of(Floats x) {
  if constexpr (kTanh) return tanh_gelu(x);
  return exact_gelu(x);
}

template <bool kTanh, bool kNoise>
static void gelu_rows(const GeluJob& job, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const RowNoise noise(job.noise, row);
    const float* in = job.in + row * job.width;
    float* out = job.out + row * job.width;
    along(job.width, [&](int64_t c, auto lanes) {
      Floats y = gelu_of<kTanh>(lanes.load(in + c) + lanes.load(job.bias + c)).value;
      if constexpr (kNoise) y *= noise.factors(c);
      lanes.store(out + c, y);
    });
  }
}

template <bool kTanh, bool kNoise>
static void gelu_grad_rows(const GeluJob& job, int64_t first, int64_t last, float* bias_grad) {
  for (int64_t row = first; row < last; ++row) {
    const RowNoise noise(job.noise, row);
    const float* in = job.in + row * job.width;
    float* out = job.out + row * job.width;
    float* grad = job.grad + row * job.width;
    along(job.width, [&](int64_t c, auto lanes) {
      GeluOf y = gelu_of<kTanh>(lanes.load(in + c) + lanes.load(job.bias + c));
      if constexpr (kNoise) {
        const Floats factors = noise.factors(c);
        y.value *= factors;
        y.slope *= factors;
      }
      lanes.store(out + c, y.value);
      const Floats g = lanes.load(grad + c) * y.slope;
      lanes.store(grad + c, g);
      lanes.store(bias_grad + c, lanes.load(bias_grad + c) + g);
    });
  }
}

static void gelu(const GeluJob& job, int64_t first, int64_t last) {
  const bool noise = job.noise.drop_below > 0;
  const auto run = job.tanh ? (noise ? gelu_rows<true, true> : gelu_rows<true, false>)
                            : (noise ? gelu_rows<false, true> : gelu_rows<false, false>);
  run(job, first, last);
}

static void gelu_grad(const GeluJob& job, int64_t first, int64_t last, float* bias_grad) {
  const bool noise = job.noise.drop_below > 0;
  const auto run = job.tanh ? (noise ? gelu_grad_rows<true, true> : gelu_grad_rows<true, false>)
                            : (noise ? gelu_grad_rows<false, true> : gelu_grad_rows<false, false>);
  run(job, first, last, bias_grad);
}

static void add_rows(const float* matrix, int64_t width, int64_t first, int64_t last, float* sums) {
  for (int64_t row = first; row < last; ++row) {
    along(width, [&](int64_t c, auto lanes) {
      lanes.store(sums + c, lanes.load(sums + c) + lanes.load(matrix + row * width + c));
    });
  }
}

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
