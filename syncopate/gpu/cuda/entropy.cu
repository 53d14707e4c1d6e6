// Cross entropy of a language model: the logits are read twice and written once, as their gradients, in bf16.
#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 512;

struct Exponents {
  float most = -INFINITY, sum = 0;  ///< of exp(x - most)
};

__device__ Exponents joined(const Exponents& a, const Exponents& b) {
  const float most = fmaxf(a.most, b.most);
  if (most == -INFINITY) return a;
  return {most, a.sum * __expf(a.most - most) + b.sum * __expf(b.most - most)};
}

__device__ Exponents of_block(Exponents mine) {
  __shared__ float mosts[kThreads / kWarp], sums[kThreads / kWarp];
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    mine = joined(mine, {__shfl_xor_sync(kAll, mine.most, offset), __shfl_xor_sync(kAll, mine.sum, offset)});
  }
  const int warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == 0) {
    mosts[warp] = mine.most;
    sums[warp] = mine.sum;
  }
  __syncthreads();
  Exponents all;
  for (int i = 0; i < kThreads / kWarp; ++i) all = joined(all, {mosts[i], sums[i]});
  return all;
}

__global__ void entropy_kernel(EntropyJob job) {
  const int64_t row = blockIdx.x, label = job.labels[row];
  auto* const logits = static_cast<__nv_bfloat16*>(job.logits) + row * job.stride;
  const bool asked = label != job.nothing;
  Exponents mine;
  if (asked) {
    for (int64_t column = threadIdx.x * kVector; column < job.classes; column += kThreads * kVector) {
      const Eight x = load(logits + column);
      Exponents some;
      for (int i = 0; i < kVector; ++i) {
        if (column + i < job.classes) some.most = fmaxf(some.most, x.at[i]);
      }
      for (int i = 0; i < kVector; ++i) {
        if (column + i < job.classes) some.sum += __expf(x.at[i] - some.most);
      }
      mine = joined(mine, some);
    }
  }
  const Exponents all = of_block(mine);
  if (threadIdx.x == 0)
    job.losses[row] = asked ? all.most + logf(all.sum) - __bfloat162float(logits[label]) : 0.0f;
  __syncthreads();  // the label's logit is read before it is written
  const float factor = asked ? 1 / all.sum : 0.0f;
  for (int64_t column = threadIdx.x * kVector; column < job.stride; column += kThreads * kVector) {
    Eight x = load(logits + column);
    for (int i = 0; i < kVector; ++i) {
      const bool in = asked && column + i < job.classes;
      x.at[i] = in ? __expf(x.at[i] - all.most) * factor - (column + i == label ? 1.0f : 0.0f) : 0.0f;
    }
    store(logits + column, x);
  }
}

}  // namespace

void launch(const EntropyJob& job, void* stream) {
  entropy_kernel<<<static_cast<unsigned>(job.rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

}  // namespace syncopate::gpu
