// The sum of several processes' arrays in one GPU's memory.
#include "syncopate/gpu/cuda/jobs.h"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void sum_kernel(SumJob job) {
  const auto stride = static_cast<int64_t>(gridDim.x) * kThreads * 4;
  for (int64_t i = job.begin + (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 4; i < job.end;
       i += stride) {
    if (i + 4 <= job.end) {
      float4 sum = *reinterpret_cast<const float4*>(job.arrays[0] + i);
      for (int a = 1; a < job.count; ++a) {
        const float4 more = *reinterpret_cast<const float4*>(job.arrays[a] + i);
        sum.x += more.x;
        sum.y += more.y;
        sum.z += more.z;
        sum.w += more.w;
      }
      for (int a = 0; a < job.count; ++a) *reinterpret_cast<float4*>(job.arrays[a] + i) = sum;
    } else {
      for (int64_t k = i; k < job.end; ++k) {
        float sum = job.arrays[0][k];
        for (int a = 1; a < job.count; ++a) sum += job.arrays[a][k];
        for (int a = 0; a < job.count; ++a) job.arrays[a][k] = sum;
      }
    }
  }
}

}  // namespace

void launch(const SumJob& job, void* stream) {
  const int64_t blocks = (job.end - job.begin + kThreads * 4 - 1) / (kThreads * 4);
  sum_kernel<<<static_cast<unsigned>(blocks < 2112 ? blocks : 2112), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      job);
}

}  // namespace syncopate::gpu
