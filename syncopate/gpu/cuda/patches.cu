// The pixels around each pixel, in rows. A thread has a row: its neighbours read what lies beside it.
#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256, kSide = PatchJob::kSide, kColumns = PatchJob::kColumns;

__device__ float number(float x) { return x; }
__device__ float number(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename Number, int kChannels>
__global__ void patches_kernel(PatchJob job, unsigned rows) {
  const unsigned row = blockIdx.x * kThreads + threadIdx.x;
  if (row >= rows) return;
  const unsigned size = job.height * job.width, image = row / size, pixel = row % size;
  const int y = static_cast<int>(pixel / job.width) - kSide / 2, x = static_cast<int>(pixel % job.width) - kSide / 2;
  const auto* const from = static_cast<const Number*>(job.images) + image * job.strides[0];
  float seen[kColumns] = {};
#pragma unroll
  for (int place = 0; place < kSide * kSide; ++place) {
    const int at_y = y + place / kSide, at_x = x + place % kSide;
    const bool within = at_y >= 0 && at_x >= 0 && at_y < static_cast<int>(job.height) && at_x < static_cast<int>(job.width);
    const auto* const here = from + at_y * job.strides[2] + at_x * job.strides[3];
#pragma unroll
    for (int channel = 0; channel < kChannels; ++channel)
      if (within) seen[place * kChannels + channel] = number(here[channel * job.strides[1]]);
  }
  auto* const out = static_cast<__nv_bfloat16*>(job.out) + static_cast<int64_t>(row) * kColumns;
#pragma unroll
  for (int column = 0; column < kColumns; column += kVector) {
    Eight eight;
#pragma unroll
    for (int i = 0; i < kVector; ++i) eight.at[i] = seen[column + i];
    store(out + column, eight);
  }
}

template <typename Number>
auto kernel_for(unsigned channels) {
  return channels == 1 ? patches_kernel<Number, 1> : channels == 2 ? patches_kernel<Number, 2> : patches_kernel<Number, 3>;
}

}  // namespace

void launch(const PatchJob& job, void* stream) {
  const unsigned rows = job.batch * job.height * job.width;
  const auto kernel = job.half ? kernel_for<__nv_bfloat16>(job.channels) : kernel_for<float>(job.channels);
  kernel<<<(rows + kThreads - 1) / kThreads, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job, rows);
}

}  // namespace syncopate::gpu
