#include "syncopate/gpu/orthonormal.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "syncopate/base/error.h"
#include "syncopate/gpu/cuda/codec_jobs.h"

namespace syncopate::gpu {

void orthonormalize(const std::vector<at::Tensor>& matrices, const std::vector<uint64_t>& keys) {
  check(keys.empty() || keys.size() == matrices.size(), "a key for each matrix or none");
  int64_t numbers = 0;
  for (const at::Tensor& matrix : matrices) numbers += matrix.numel();
  if (numbers == 0) return;
  const at::Tensor room = at::empty({numbers}, matrices.front().options().dtype(at::kDouble));
  double* basis = room.data_ptr<double>();
  OrthonormalJob job;
  job.replaces = !keys.empty();
  const auto flush = [&] {
    if (job.matrices > 0) launch(job, c10::cuda::getCurrentCUDAStream().stream());
    C10_CUDA_CHECK(cudaGetLastError());
    job.matrices = 0;
  };
  for (size_t i = 0; i < matrices.size(); ++i) {
    const at::Tensor& matrix = matrices[i];
    check(matrix.is_contiguous(), "rows without gaps");
    if (matrix.numel() == 0) continue;
    job.each[job.matrices++] = {.rows = matrix.data_ptr<float>(),
                                .basis = basis,
                                .many = matrix.size(0),
                                .count = matrix.size(1),
                                .key = keys.empty() ? 0 : keys[i]};
    basis += matrix.numel();
    if (job.matrices == OrthonormalJob::kMost) flush();
  }
  flush();
}

}  // namespace syncopate::gpu
