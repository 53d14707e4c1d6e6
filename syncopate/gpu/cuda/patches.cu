// The pixels around each pixel, in rows. A thread writes eight of them.
#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void patches_kernel(PatchJob job, unsigned across, unsigned count) {
  const unsigned number = blockIdx.x * kThreads + threadIdx.x;
  if (number >= count) return;
  const unsigned row = number / across, first = number % across * kVector;
  const unsigned pixel = row % (job.height * job.width), image = row / (job.height * job.width);
  const int y = static_cast<int>(pixel / job.width) - job.padding, x = static_cast<int>(pixel % job.width) - job.padding;
  const auto* const from = static_cast<const __nv_bfloat16*>(job.images) + image * job.strides[0];
  Eight made{};
#pragma unroll
  for (unsigned i = 0; i < kVector; ++i) {
    const unsigned column = first + i, place = column / job.channels, channel = column % job.channels;
    const int at_y = y + static_cast<int>(place / job.kernel), at_x = x + static_cast<int>(place % job.kernel);
    const bool within = place < job.kernel * job.kernel && at_y >= 0 && at_x >= 0 &&
                        at_y < static_cast<int>(job.height) && at_x < static_cast<int>(job.width);
    if (within) made.at[i] = __bfloat162float(from[channel * job.strides[1] + at_y * job.strides[2] + at_x * job.strides[3]]);
  }
  store(static_cast<__nv_bfloat16*>(job.out) + static_cast<int64_t>(row) * job.columns + first, made);
}

}  // namespace

void launch(const PatchJob& job, void* stream) {
  const unsigned across = job.columns / kVector, count = job.batch * job.height * job.width * across;
  patches_kernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job, across, count);
}

}  // namespace syncopate::gpu
