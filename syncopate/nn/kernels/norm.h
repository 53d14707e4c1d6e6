#pragma once

#include "syncopate/nn/kernels/lanes.h"

// LayerNorm with what stands before it, and the embeddings, which end in one.
namespace syncopate::nn::kernels::SYNCOPATE_ISA {

/// Mean and 1 / deviation of a row.
struct Stats {
  float mean, inverse;
};

/// `row` is any function of (column, lanes); it is read twice.
template <typename Row>
SYNCOPATE_INLINE Stats stats_of(int64_t width, float eps, const Row& row) {
  Floats sum{}, squares{};
  along(width, [&](int64_t c, auto lanes) { sum += lanes.only(row(c, lanes)); });
  const float mean = sum_of(sum) / static_cast<float>(width);
  along(width, [&](int64_t c, auto lanes) {
    const Floats apart = lanes.only(row(c, lanes) - mean);
    squares += apart * apart;
  });
  return {mean, 1.0f / __builtin_sqrtf(sum_of(squares) / static_cast<float>(width) + eps)};
}

template <bool kNoise>
static void norm_rows(const NormJob& job, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    float* sum = job.sum + row * job.width;
    const float* residual = job.residual + row * job.residual_stride;
    const RowNoise noise(job.noise, row);
    along(job.width, [&](int64_t c, auto lanes) {
      Floats x = lanes.load(sum + c) + lanes.load(job.bias + c);
      if constexpr (kNoise) x *= noise.factors(c);
      lanes.store(sum + c, x + lanes.load(residual + c));
    });
    const Stats stats =
        stats_of(job.width, job.eps, [&](int64_t c, auto lanes) { return lanes.load(sum + c); });
    job.stats[2 * row] = stats.mean;
    job.stats[2 * row + 1] = stats.inverse;
    float* out = job.out + row * job.width;
    along(job.width, [&](int64_t c, auto lanes) {
      const Floats x = (lanes.load(sum + c) - stats.mean) * stats.inverse;
      lanes.store(out + c, x * lanes.load(job.weight + c) + lanes.load(job.shift + c));
    });
  }
}

static void norm(const NormJob& job, int64_t first, int64_t last) {
  (job.noise.drop_below > 0 ? norm_rows<true> : norm_rows<false>)(job, first, last);
}

/// The gradient of a norm's input from that of its output. `x` and `grad` are functions of (column, lanes)
/// that give input and output gradient, `put` takes the result.
template <typename X, typename Grad, typename Put>
SYNCOPATE_INLINE void norm_grad_row(int64_t width, const float* weight, Stats stats, float* weight_grad,
                                    float* shift_grad, const X& x, const Grad& grad, const Put& put) {
  Floats sum{}, dot{};
  along(width, [&](int64_t c, auto lanes) {
    const Floats unit = (x(c, lanes) - stats.mean) * stats.inverse;
    const Floats g = grad(c, lanes);
    const Floats weighted = g * lanes.load(weight + c);  // zero beyond the row
    sum += weighted;
    dot += weighted * unit;
    lanes.store(weight_grad + c, lanes.load(weight_grad + c) + g * unit);
    lanes.store(shift_grad + c, lanes.load(shift_grad + c) + g);
  });
  const float mean_sum = sum_of(sum) / static_cast<float>(width);
  const float mean_dot = sum_of(dot) / static_cast<float>(width);
  along(width, [&](int64_t c, auto lanes) {
    const Floats unit = (x(c, lanes) - stats.mean) * stats.inverse;
    const Floats weighted = grad(c, lanes) * lanes.load(weight + c);
    put(c, lanes, (weighted - mean_sum - unit * mean_dot) * stats.inverse);
  });
}

template <bool kNoise, bool kBias>
static void norm_grad_rows(const NormGradJob& job, int64_t first, int64_t last, float* weight_grad,
                           float* shift_grad, float* bias_grad) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * job.width;
    const RowNoise noise(job.noise, row);
    norm_grad_row(
        job.width, job.weight, {job.stats[2 * row], job.stats[2 * row + 1]}, weight_grad, shift_grad,
        [&](int64_t c, auto lanes) { return lanes.load(job.sum + at + c); },
        [&](int64_t c, auto lanes) { return lanes.load(job.grad_out + at + c); },
        [&](int64_t c, auto lanes, Floats g) {
          lanes.store(job.grad_sum + at + c, g);
          if constexpr (kNoise) {
            g *= noise.factors(c);
            lanes.store(job.grad_dense + at + c, g);
          }
          if constexpr (kBias) lanes.store(bias_grad + c, lanes.load(bias_grad + c) + g);
        });
  }
}

static void norm_grad(const NormGradJob& job, int64_t first, int64_t last, float* weight_grad,
                      float* shift_grad, float* bias_grad) {
  const bool noise = job.noise.drop_below > 0;
  const auto run = bias_grad != nullptr
                       ? (noise ? norm_grad_rows<true, true> : norm_grad_rows<false, true>)
                       : (noise ? norm_grad_rows<true, false> : norm_grad_rows<false, false>);
  run(job, first, last, weight_grad, shift_grad, bias_grad);
}

/// The sum of the three embeddings of a row, as a function of (column, lanes).
SYNCOPATE_INLINE auto embedded(const EmbedJob& job, int64_t row) {
  const float* word = job.word + job.ids[row] * job.width;
  const float* position = job.position + job.places[row] * job.width;
  const float* type = job.type + job.types[row] * job.width;
  return [=](int64_t c, auto lanes) __attribute__((always_inline)) {
    return lanes.load(word + c) + lanes.load(position + c) + lanes.load(type + c);
  };
}

static void embed(const EmbedJob& job, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const auto x = embedded(job, row);
    const Stats stats = stats_of(job.width, job.eps, x);
    job.stats[2 * row] = stats.mean;
    job.stats[2 * row + 1] = stats.inverse;
    const RowNoise noise(job.noise, row);
    float* out = job.out + row * job.width;
    along(job.width, [&](int64_t c, auto lanes) {
      const Floats unit = (x(c, lanes) - stats.mean) * stats.inverse;
      lanes.store(out + c,
                  (unit * lanes.load(job.weight + c) + lanes.load(job.shift + c)) * noise.factors(c));
    });
  }
}

static void embed_grad(const EmbedJob& job, int64_t first, int64_t last, float* weight_grad,
                       float* shift_grad) {
  for (int64_t row = first; row < last; ++row) {
    const float* grad_out = job.grad_out + row * job.width;
    float* grad_sum = job.grad_sum + row * job.width;
    const RowNoise noise(job.noise, row);
    norm_grad_row(
        job.width, job.weight, {job.stats[2 * row], job.stats[2 * row + 1]}, weight_grad, shift_grad,
        embedded(job, row),
        [&](int64_t c, auto lanes) { return lanes.load(grad_out + c) * noise.factors(c); },
        [&](int64_t c, auto lanes, Floats g) { lanes.store(grad_sum + c, g); });
  }
}

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
