// One element of each of k equal stretches, chosen by a key: codec/random_k.cpp, bit for bit.
#include "syncopate/gpu/cuda/numbers.cuh"
#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256;

/// The position of pick `number` among `count` elements.
__device__ int64_t pick_of(int64_t number, int64_t count, int64_t kept, uint64_t key) {
  const int64_t width = count / kept, longer = count % kept;  // the first `longer` stretches have one more
  const int64_t begin = number * width + min(number, longer), room = width + (number < longer ? 1 : 0);
  const uint64_t draw = mixed(key + static_cast<uint64_t>(number) * 0xD1342543DE82EF95ULL) >> 32;
  return begin + static_cast<int64_t>((draw * static_cast<uint64_t>(room)) >> 32);
}

__device__ int64_t this_thread() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

__global__ void keep_kernel(PickJob job) {
  if ((job.strange[0] | job.strange[1]) != 0) return;
  const auto stride = static_cast<int64_t>(gridDim.x) * kThreads;
#pragma unroll 4
  for (int64_t i = this_thread(); i < job.count; i += stride) job.rest[i] = job.from[i];
}

__global__ void pick_kernel(PickJob job) {
  const int64_t number = this_thread();
  if (number >= job.kept) return;
  auto* const packed = reinterpret_cast<float*>(job.packed);
  if ((job.strange[0] | job.strange[1]) != 0) {
    // Whichever element it was, the others must learn of it.
    packed[number] = __uint_as_float(kNoNumber);
    return;
  }
  const int64_t at = pick_of(number, job.count, job.kept, job.key);
  packed[number] = job.from[at];
  if (job.rest != nullptr) job.rest[at] = 0;
}

__global__ void unpick_kernel(UnpickJob job) {
  const int64_t number = this_thread();
  if (number >= job.kept) return;
  float& into = job.into[pick_of(number, job.count, job.kept, job.key)];
  into = __fadd_rn(into, reinterpret_cast<const float*>(job.packed)[number]);
}

}  // namespace

void launch(const PickJob& job, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (job.rest != nullptr) {
    keep_kernel<<<min(blocks_for(job.count, kThreads * 4), 2048u), kThreads, 0, on>>>(job);
  }
  pick_kernel<<<blocks_for(job.kept, kThreads), kThreads, 0, on>>>(job);
}

void launch(const UnpickJob& job, void* stream) {
  unpick_kernel<<<blocks_for(job.kept, kThreads), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

}  // namespace syncopate::gpu
