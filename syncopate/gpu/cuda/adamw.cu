// The optimizer's pass over the flat arrays: one kernel, which also writes the copy in half precision that
// the next step's products read; and the norm that clipping needs, which the host never has to wait for.
#include <cuda_bf16.h>

#include "syncopate/gpu/cuda/jobs.h"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256;

/// Where element `i` of a piece is in its entry's copy.
__device__ int32_t laid(const Piece& piece, int32_t i) {
  const int32_t at = piece.first + i;
  if (piece.pixels == 1) return at;
  const int32_t row = at / piece.pixels, pixel = at % piece.pixels;
  return (row / piece.channels * piece.pixels + pixel) * piece.channels + row % piece.channels;
}

__device__ void store_half(__nv_bfloat16* half, const Piece& piece, int32_t i, float4 x) {
  if (piece.pixels != 1) {
    half[laid(piece, i)] = __float2bfloat16(x.x);
    half[laid(piece, i + 1)] = __float2bfloat16(x.y);
    half[laid(piece, i + 2)] = __float2bfloat16(x.z);
    half[laid(piece, i + 3)] = __float2bfloat16(x.w);
    return;
  }
  __nv_bfloat16* const to = half + piece.first + i;
  uint2 raw;
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(&raw);
  pairs[0] = __floats2bfloat162_rn(x.x, x.y);
  pairs[1] = __floats2bfloat162_rn(x.z, x.w);
  *reinterpret_cast<uint2*>(to) = raw;
}

/// Calls `update(element)` for the elements of a piece: of four at a time, and of what is left.
template <typename Four, typename One>
__device__ void over(const Piece& piece, const Four& four, const One& one) {
  const int32_t whole = piece.count / 4 * 4;
  for (int32_t i = static_cast<int32_t>(threadIdx.x) * 4; i < whole; i += kThreads * 4) four(i);
  for (int32_t i = whole + static_cast<int32_t>(threadIdx.x); i < piece.count; i += kThreads) one(i);
}

__device__ float updated(const AdamWJob& job, float factor, float shrink, float x, float grad, float& first,
                         float& second) {
  const float g = grad * factor;
  first = job.keep1 * first + (1 - job.keep1) * g;
  second = job.keep2 * second + (1 - job.keep2) * g * g;
  return x * shrink - job.step_size * first / (sqrtf(second) * job.root_correction + job.eps);
}

__global__ void adamw_kernel(AdamWJob job) {
  const float factor = *job.factor;
  if (!isfinite(factor)) return;
  const Piece piece = job.pieces[blockIdx.x];
  const float shrink = piece.decays != 0 ? job.shrink : 1.0f;
  float* const values = job.values + piece.begin;
  const float* const grads = job.grads + piece.begin;
  float *const first = job.first + piece.begin, *const second = job.second + piece.begin;
  auto* const half = job.half != nullptr ? static_cast<__nv_bfloat16*>(job.half) + piece.half : nullptr;
  const auto four = [&](int32_t i) {
    float4 x = *reinterpret_cast<float4*>(values + i), m = *reinterpret_cast<float4*>(first + i),
           v = *reinterpret_cast<float4*>(second + i);
    const float4 g = *reinterpret_cast<const float4*>(grads + i);
    x.x = updated(job, factor, shrink, x.x, g.x, m.x, v.x);
    x.y = updated(job, factor, shrink, x.y, g.y, m.y, v.y);
    x.z = updated(job, factor, shrink, x.z, g.z, m.z, v.z);
    x.w = updated(job, factor, shrink, x.w, g.w, m.w, v.w);
    *reinterpret_cast<float4*>(values + i) = x;
    *reinterpret_cast<float4*>(first + i) = m;
    *reinterpret_cast<float4*>(second + i) = v;
    if (half != nullptr) store_half(half, piece, i, x);
  };
  over(piece, four, [&](int32_t i) {
    values[i] = updated(job, factor, shrink, values[i], grads[i], first[i], second[i]);
    if (half != nullptr) half[laid(piece, i)] = __float2bfloat16(values[i]);
  });
}

__global__ void copy_kernel(AdamWJob job) {
  const Piece piece = job.pieces[blockIdx.x];
  const float* const values = job.values + piece.begin;
  auto* const half = static_cast<__nv_bfloat16*>(job.half) + piece.half;
  over(
      piece, [&](int32_t i) { store_half(half, piece, i, *reinterpret_cast<const float4*>(values + i)); },
      [&](int32_t i) { half[laid(piece, i)] = __float2bfloat16(values[i]); });
}

/// The threads' values added up, in one order; thread 0 has the sum.
__device__ double sum_of_block(double value) {
  __shared__ double room[kThreads];
  room[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) room[threadIdx.x] += room[threadIdx.x + half];
    __syncthreads();
  }
  return room[0];
}

__global__ void squares_kernel(ClipJob job) {
  const auto stride = static_cast<int64_t>(gridDim.x) * kThreads * 4;
  double sum = 0;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 4; i < job.count;
       i += stride) {
    const float4 g = *reinterpret_cast<const float4*>(job.grads + i);
    sum += static_cast<double>(g.x * g.x + g.y * g.y) + static_cast<double>(g.z * g.z + g.w * g.w);
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) job.partial[blockIdx.x] = sum;
}

__global__ void clip_kernel(ClipJob job) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kClipBlocks; i += kThreads) sum += job.partial[i];
  sum = sum_of_block(sum);
  if (threadIdx.x > 0) return;
  const double norm = sqrt(sum) * fabs(job.scale);
  *job.norm = norm;
  // A norm that is no number makes a factor that is none.
  const bool within = norm <= job.limit || job.limit <= 0;
  *job.factor =
      static_cast<float>(isfinite(norm) && within ? job.scale : job.scale * job.limit / (norm + 1e-6));
  if (!isfinite(norm)) *job.factor = __int_as_float(0x7fffffff);
}

}  // namespace

void launch(const AdamWJob& job, void* stream) {
  adamw_kernel<<<static_cast<unsigned>(job.count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

void launch_copy(const AdamWJob& job, void* stream) {
  copy_kernel<<<static_cast<unsigned>(job.count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

void launch(const ClipJob& job, void* stream) {
  squares_kernel<<<kClipBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
  clip_kernel<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

}  // namespace syncopate::gpu
