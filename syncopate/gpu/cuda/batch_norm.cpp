#include "syncopate/gpu/batch_norm.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "syncopate/base/error.h"
#include "syncopate/gpu/cuda/jobs.h"
#include "syncopate/gpu/patches.h"

namespace syncopate::gpu {
namespace {

void* data(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }
float* float_data(const at::Tensor& tensor) { return static_cast<float*>(data(tensor)); }

at::Tensor room(const at::Tensor& like, at::IntArrayRef sizes) {
  return at::empty(sizes, like.options().dtype(at::kFloat));
}

template <typename Job>
void run(const Job& job) {
  launch(job, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

BatchNormed batch_norm(const at::Tensor& x_RC, const at::Tensor& weight_C, const at::Tensor& bias_C,
                       const at::Tensor& added_RC, bool relu, const at::Tensor& running_mean_C,
                       const at::Tensor& running_var_C, double momentum, double eps) {
  const int64_t R = x_RC.size(0), C = x_RC.size(1);
  const BatchNormed made{
      at::empty_like(x_RC), room(x_RC, {C, 2}),
      relu && added_RC.defined() ? at::empty({R, C / 8}, x_RC.options().dtype(at::kByte)) : at::Tensor()};
  const at::Tensor partial = room(x_RC, {norm_passes(R, C), 2, C});
  run(BatchNormJob{.rows = R,
                   .channels = C,
                   .x = data(x_RC),
                   .weight = float_data(weight_C),
                   .bias = float_data(bias_C),
                   .added = data(added_RC),
                   .relu = relu,
                   .let_through = static_cast<uint8_t*>(data(made.let_through)),
                   .running_mean = float_data(running_mean_C),
                   .running_var = float_data(running_var_C),
                   .momentum = static_cast<float>(momentum),
                   .eps = static_cast<float>(eps),
                   .partial = float_data(partial),
                   .stats = float_data(made.stats_C2),
                   .out = data(made.out)});
  return made;
}

BatchNormGrads batch_norm_grads(const at::Tensor& grad_RC, const at::Tensor& other_grad_RC,
                                const at::Tensor& x_RC, const BatchNormed& made, const at::Tensor& weight_C,
                                const at::Tensor& bias_C, bool added, bool relu,
                                const at::Tensor& weight_grad_C, const at::Tensor& bias_grad_C) {
  const int64_t R = x_RC.size(0), C = x_RC.size(1);
  const BatchNormGrads grads{at::empty_like(x_RC), added ? at::empty_like(x_RC) : at::Tensor()};
  const at::Tensor partial = room(x_RC, {norm_passes(R, C), 2, C}), means = room(x_RC, {C, 2});
  run(BatchNormGradJob{.rows = R,
                       .channels = C,
                       .grad = data(grad_RC),
                       .other_grad = data(other_grad_RC),
                       .x = data(x_RC),
                       .relu = relu,
                       .let_through = static_cast<const uint8_t*>(data(made.let_through)),
                       .weight = float_data(weight_C),
                       .bias = float_data(bias_C),
                       .stats = float_data(made.stats_C2),
                       .partial = float_data(partial),
                       .means = float_data(means),
                       .added_grad = data(grads.added_RC),
                       .x_grad = data(grads.x_RC),
                       .weight_grad = float_data(weight_grad_C),
                       .bias_grad = float_data(bias_grad_C)});
  return grads;
}

void add_laid(const at::Tensor& grad_OIKK, const at::Tensor& laid_OIKK) {
  check(grad_OIKK.is_contiguous() && laid_OIKK.is_contiguous(at::MemoryFormat::ChannelsLast) &&
            laid_OIKK.scalar_type() == at::kBFloat16,
        "a gradient as it lies, and one in bf16 with channels last");
  run(LaidGradJob{.outputs = grad_OIKK.size(0),
                  .channels = grad_OIKK.size(1),
                  .laid_channels = laid_OIKK.size(1),
                  .pixels = static_cast<int>(grad_OIKK.size(2) * grad_OIKK.size(3)),
                  .laid = data(laid_OIKK),
                  .grad = float_data(grad_OIKK)});
}

at::Tensor patches(const at::Tensor& x_BCHW) {
  static_assert(PatchJob::kSide == kPatchSide && PatchJob::kColumns == kPatchWidth);
  const int64_t B = x_BCHW.size(0), C = x_BCHW.size(1), H = x_BCHW.size(2), W = x_BCHW.size(3);
  const bool half = x_BCHW.scalar_type() == at::kBFloat16;
  check((half || x_BCHW.scalar_type() == at::kFloat) && takes_patches(C) && B * H * W < (int64_t{1} << 31),
        "patches of images with few channels");
  at::Tensor out =
      at::empty({B * H * W, kPatchWidth}, at::TensorOptions().device(x_BCHW.device()).dtype(at::kBFloat16));
  PatchJob job{.batch = static_cast<unsigned>(B),
               .channels = static_cast<unsigned>(C),
               .height = static_cast<unsigned>(H),
               .width = static_cast<unsigned>(W),
               .half = half,
               .images = data(x_BCHW),
               .out = data(out)};
  for (int i = 0; i < 4; ++i) job.strides[i] = x_BCHW.stride(i);
  if (out.numel() > 0) run(job);
  return out;
}

}  // namespace syncopate::gpu
