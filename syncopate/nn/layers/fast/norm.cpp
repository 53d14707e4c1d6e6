#include "syncopate/nn/layers/fast/norm.h"

#include <ATen/ATen.h>

#include "syncopate/nn/layers/fast/support.h"

namespace syncopate::nn::fast {

Normed norm_sum(const at::Tensor& dense_ND, const at::Tensor& bias_D, const at::Tensor& residual,
                int64_t residual_stride, const at::Tensor& weight_D, const at::Tensor& shift_D, double eps,
                const Noise& noise) {
  const int64_t N = dense_ND.size(0), D = dense_ND.size(1);
  Normed normed = {at::empty_like(dense_ND), at::empty({N, 2}, dense_ND.options())};
  kernels::NormJob job;
  job.width = D;
  job.eps = static_cast<float>(eps);
  job.noise = noise_job(noise);
  job.bias = bias_D.data_ptr<float>();
  job.weight = weight_D.data_ptr<float>();
  job.shift = shift_D.data_ptr<float>();
  job.residual = residual.data_ptr<float>();
  job.residual_stride = residual_stride;
  job.sum = dense_ND.data_ptr<float>();
  job.stats = normed.stats_N2.data_ptr<float>();
  job.out = normed.out_ND.data_ptr<float>();
  for_rows(N, D, [&](int64_t first, int64_t last) { kernels::kernels().norm(job, first, last); });
  return normed;
}

NormSumGrads norm_sum_grads(const at::Tensor& grad_out_ND, const at::Tensor& sum_ND,
                            const at::Tensor& stats_N2, const at::Tensor& weight_D, const Noise& noise) {
  const int64_t N = sum_ND.size(0), D = sum_ND.size(1);
  NormSumGrads grads;
  grads.sum_ND = at::empty_like(sum_ND);
  grads.dense_ND = noise.active() ? at::empty_like(sum_ND) : grads.sum_ND;
  kernels::NormGradJob job;
  job.width = D;
  job.noise = noise_job(noise);
  job.weight = weight_D.data_ptr<float>();
  job.sum = sum_ND.data_ptr<float>();
  job.stats = stats_N2.data_ptr<float>();
  job.grad_out = grad_out_ND.data_ptr<float>();
  job.grad_sum = grads.sum_ND.data_ptr<float>();
  job.grad_dense = grads.dense_ND.data_ptr<float>();
  const at::Tensor sums = sum_over_rows(N, 3 * D, [&](int64_t first, int64_t last, float* part) {
    kernels::kernels().norm_grad(job, first, last, part, part + D, part + 2 * D);
  });
  grads.weight_D = sums.narrow(0, 0, D);
  grads.shift_D = sums.narrow(0, D, D);
  grads.bias_D = sums.narrow(0, 2 * D, D);
  return grads;
}

}  // namespace syncopate::nn::fast
