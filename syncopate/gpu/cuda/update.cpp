#include "syncopate/gpu/update.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/gpu/cuda/jobs.h"

namespace syncopate::gpu {
namespace {

void* stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

at::Tensor pieces_of(const tensor::FlatParams& params) {
  std::vector<Piece> pieces;
  for (const auto& entry : params.entries()) {
    const auto channels = static_cast<int32_t>(entry.channels_last() ? entry.parameter.size(1) : 1);
    const auto pixels =
        static_cast<int32_t>(entry.channels_last() ? entry.parameter.size(2) * entry.parameter.size(3) : 1);
    for (int64_t at = 0; at < entry.size; at += kPiece) {
      pieces.push_back({.begin = entry.offset + at,
                        .half = entry.half_offset,
                        .first = static_cast<int32_t>(at),
                        .count = static_cast<int32_t>(std::min<int64_t>(kPiece, entry.size - at)),
                        .decays = entry.decay ? 1 : 0,
                        .channels = channels,
                        .pixels = pixels});
    }
  }
  const auto bytes = static_cast<int64_t>(pieces.size() * sizeof(Piece));
  const at::Tensor host = at::empty({bytes}, at::kByte);
  std::memcpy(host.data_ptr(), pieces.data(), static_cast<size_t>(bytes));
  return host.to(params.values.device());
}

AdamWJob job_of(tensor::FlatParams& params) {
  if (!params.layout.defined()) params.layout = pieces_of(params);
  AdamWJob job;
  job.pieces = static_cast<const Piece*>(params.layout.data_ptr());
  job.count = params.layout.numel() / static_cast<int64_t>(sizeof(Piece));
  job.values = params.values.data_ptr<float>();
  job.half = params.half.defined() ? params.half.data_ptr() : nullptr;
  return job;
}

}  // namespace

void adamw(tensor::FlatParams& params, const at::Tensor& first, const at::Tensor& second,
           const at::Tensor& factor, const AdamWStep& step) {
  AdamWJob job = job_of(params);
  job.grads = params.grads.data_ptr<float>();
  job.first = first.data_ptr<float>();
  job.second = second.data_ptr<float>();
  job.factor = factor.data_ptr<float>();
  job.keep1 = static_cast<float>(step.beta1);
  job.keep2 = static_cast<float>(step.beta2);
  job.step_size = static_cast<float>(step.step_size);
  job.root_correction = static_cast<float>(step.root_correction);
  job.eps = static_cast<float>(step.eps);
  job.shrink = static_cast<float>(step.shrink);
  launch(job, stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

void refresh_half(tensor::FlatParams& params) {
  check(params.half.defined(), "there is a copy in half precision");
  launch_copy(job_of(params), stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

Clip::Clip(c10::Device device)
    : partial_(at::empty({kClipBlocks}, at::TensorOptions().dtype(at::kDouble).device(device))),
      norm_(at::zeros({1}, partial_.options())),
      host_norm_(at::zeros({1}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true))),
      factor_(at::ones({1}, partial_.options().dtype(at::kFloat))) {}

void Clip::measure(const at::Tensor& grads, double scale, double limit) {
  launch(ClipJob{.grads = grads.data_ptr<float>(),
                 .count = grads.numel(),
                 .partial = partial_.data_ptr<double>(),
                 .scale = scale,
                 .limit = limit,
                 .norm = norm_.data_ptr<double>(),
                 .factor = factor_.data_ptr<float>()},
         stream());
  C10_CUDA_CHECK(cudaGetLastError());
  host_norm_.copy_(norm_, true);
  known_.set();
}

void Clip::set_factor(double factor) { factor_.fill_(factor); }

double Clip::norm() {
  known_.wait();
  return *host_norm_.data_ptr<double>();
}

}  // namespace syncopate::gpu
