// Rows made orthonormal one after another, in double: parallel/averagers/orthonormal.cpp, with its order of
// sums. A block has a matrix; thread t adds up elements t, t + 256, t + 512, and so on.
#include "syncopate/gpu/cuda/numbers.cuh"
#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256;
using Matrix = OrthonormalJob::Matrix;

template <typename Use>
__device__ void over_row(int64_t count, const Use& use) {
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < count; i += kThreads) use(i);
}

/// The same on all threads, which have all written what they had to.
__device__ double dot(const double* a, const double* b, int64_t count) {
  __shared__ double sums[kThreads];
  double sum = 0;
  over_row(count, [&](int64_t i) { sum = __dadd_rn(sum, __dmul_rn(a[i], b[i])); });
  __syncthreads();  // the last sums were read
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half)
      sums[threadIdx.x] = __dadd_rn(sums[threadIdx.x], sums[threadIdx.x + half]);
    __syncthreads();
  }
  return sums[0];
}

/// Takes the directions of `done` rows of `basis` out of `row` and gives it length one; false: nothing but
/// rounding would be left of it. A thread reads and writes its own elements alone.
__device__ bool clear_and_scale(const double* basis, int64_t done, double* row, int64_t count) {
  const double before = __dsqrt_rn(dot(row, row, count));
  if (!(before > 0)) return false;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t k = 0; k < done; ++k) {
      const double* const other = basis + k * count;
      const double share = dot(other, row, count);
      over_row(count, [&](int64_t i) { row[i] = __dadd_rn(row[i], -__dmul_rn(share, other[i])); });
    }
  }
  const double left = __dsqrt_rn(dot(row, row, count));
  if (!(left > 1e-7 * before)) return false;
  over_row(count, [&](int64_t i) { row[i] = __ddiv_rn(row[i], left); });
  return true;
}

/// Draw `number` of base/rng.h's stream.
__device__ double uniform(uint64_t seed, uint64_t number) {
  const uint64_t bits = mixed((seed + number) * 0xD1342543DE82EF95ULL + 1);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

__device__ double normal(uint64_t seed, uint64_t number) {
  constexpr double kTurn = 6.283185307179586;
  return sqrt(-2.0 * log(1.0 - uniform(seed, 2 * number))) * cos(kTurn * uniform(seed, 2 * number + 1));
}

__global__ void __launch_bounds__(kThreads) orthonormal_kernel(OrthonormalJob job) {
  const Matrix& matrix = job.each[blockIdx.x];
  const int64_t count = matrix.count;
  over_row(matrix.many * count, [&](int64_t i) { matrix.basis[i] = matrix.rows[i]; });
  __syncthreads();
  for (int64_t k = 0; k < matrix.many; ++k) {
    double* const row = matrix.basis + k * count;
    bool done = clear_and_scale(matrix.basis, k, row, count);
    for (int attempt = 0; !done && job.replaces && k < count && attempt < 4; ++attempt) {
      const uint64_t seed =
          mixed(mixed(mixed(matrix.key) ^ static_cast<uint64_t>(k)) ^ static_cast<uint64_t>(attempt));
      over_row(count, [&](int64_t i) { row[i] = normal(seed, static_cast<uint64_t>(i)); });
      done = clear_and_scale(matrix.basis, k, row, count);
    }
    if (!done) over_row(count, [&](int64_t i) { row[i] = 0; });
  }
  __syncthreads();
  over_row(matrix.many * count, [&](int64_t i) { matrix.rows[i] = static_cast<float>(matrix.basis[i]); });
}

}  // namespace

void launch(const OrthonormalJob& job, void* stream) {
  orthonormal_kernel<<<static_cast<unsigned>(job.matrices), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      job);
}

}  // namespace syncopate::gpu
