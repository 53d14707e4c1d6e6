#include "syncopate/nn/layers/fast/support.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "syncopate/tensor/parallel.h"

namespace syncopate::nn::fast {

bool can_run(std::initializer_list<at::Tensor> tensors) {
  if (tensor::cpu_precision() == tensor::Precision::kFp16) return false;  // products in it are libtorch's
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous() &&
           tensor.numel() > 0;
  });
}

kernels::NoiseJob noise_job(const Noise& noise) {
  return {noise.key, noise.drop_below, noise.scale, noise.rows ? noise.rows->data() : nullptr};
}

void for_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& work) {
  constexpr int64_t kWorthAThread = 32768;  // elements
  tensor::parallel_for(0, rows, std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(width, 1)), work);
}

at::Tensor sum_over_rows(int64_t rows, int64_t width,
                         const std::function<void(int64_t, int64_t, float*)>& work) {
  constexpr int64_t kRowsPerPart = 64, kMostParts = 64;
  const int64_t parts = std::clamp<int64_t>(rows / kRowsPerPart, 1, kMostParts);
  at::Tensor sums = at::zeros({parts, width}, at::kFloat);
  float* memory = sums.data_ptr<float>();
  tensor::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      work(rows * part / parts, rows * (part + 1) / parts, memory + part * width);
    }
  });
  kernels::kernels().add_rows(memory, width, 1, parts, memory);
  return sums.select(0, 0);
}

kernels::AttentionJob attention_shape(int64_t heads, int64_t width, int64_t queries, int64_t length,
                                      const Noise& noise, tensor::Precision precision) {
  kernels::AttentionJob job;
  job.heads = heads;
  job.head_width = width / heads;
  job.queries = queries;
  job.length = length;
  job.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(job.head_width)));
  job.half = precision == tensor::Precision::kBf16;
  job.noise = noise_job(noise);
  return job;
}

void for_heads(int64_t examples, const kernels::AttentionJob& job,
               decltype(kernels::Kernels::attention) kernel) {
  const auto floats = static_cast<size_t>(kernels::kernels().attention_scratch(job));
  tensor::parallel_for(0, examples * job.heads, 1, [&](int64_t first, int64_t last) {
    const std::unique_ptr<float[]> scratch(new float[floats]);
    kernel(job, first, last, scratch.get());
  });
}

}  // namespace syncopate::nn::fast
