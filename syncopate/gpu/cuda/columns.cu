// Gelu, parts joined, sums over columns and rows scattered into a table. Threads have eight columns each and
// walk down the rows of a chunk; chunks' sums are added by a second kernel, in order.
#include <algorithm>

#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 128;

unsigned across(int64_t width) { return static_cast<unsigned>((width / kVector + kThreads - 1) / kThreads); }

__device__ int64_t column_of_thread() {
  return (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kVector;
}

/// The value and its slope: x Phi(x), or its approximation by tanh.
__device__ float2 gelu_of(float x, bool approximate) {
  if (approximate) {
    constexpr float kScale = 0.7978845608028654f, kCube = 0.044715f;  // sqrt(2 / pi)
    const float inner = kScale * (x + kCube * x * x * x), t = tanhf(inner);
    const float slope = 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * kScale * (1 + 3 * kCube * x * x);
    return {0.5f * x * (1 + t), slope};
  }
  const float share = 0.5f * (1 + erff(x * 0.7071067811865476f));
  return {x * share, share + x * 0.3989422804014327f * __expf(-0.5f * x * x)};
}

__global__ void gelu_kernel(GeluJob job) {
  const int64_t column = column_of_thread();
  if (column >= job.width) return;
  for (int64_t row = blockIdx.y; row < job.rows; row += gridDim.y) {
    const int64_t at = row * job.width + column;
    Eight x = load(static_cast<const __nv_bfloat16*>(job.in) + at);
    for (int i = 0; i < kVector; ++i) x.at[i] = gelu_of(x.at[i], job.tanh).x;
    if (job.drop.below > 0) RowNoise(job.drop, row).apply(x, column);
    store(static_cast<__nv_bfloat16*>(job.out) + at, x);
  }
}

__global__ void gelu_grad_kernel(GeluGradJob job, int64_t rows_each) {
  const int64_t column = column_of_thread();
  if (column >= job.width) return;
  Eight sums{};
  const int64_t first = blockIdx.y * rows_each, last = min(first + rows_each, job.rows);
#pragma unroll 4
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * job.width + column;
    const Eight x = load(static_cast<const __nv_bfloat16*>(job.in) + at);
    Eight grad = load(static_cast<const __nv_bfloat16*>(job.grad) + at);
    if (job.drop.below > 0) RowNoise(job.drop, row).apply(grad, column);
    for (int i = 0; i < kVector; ++i) {
      grad.at[i] *= gelu_of(x.at[i], job.tanh).y;
      sums.at[i] += grad.at[i];
    }
    store(static_cast<__nv_bfloat16*>(job.grad) + at, grad);
  }
  float* const to = job.partial + blockIdx.y * job.width + column;
  for (int i = 0; i < kVector; ++i) to[i] = sums.at[i];
}

__global__ void join_kernel(JoinJob job, int64_t rows_each) {
  const int64_t column = column_of_thread(), all = job.parts * job.width;
  if (column >= all) return;
  const auto* const from =
      static_cast<const __nv_bfloat16*>(job.from[column / job.width]) + column % job.width;
  Eight sums{};
  const int64_t first = blockIdx.y * rows_each, last = min(first + rows_each, job.rows);
#pragma unroll 4
  for (int64_t row = first; row < last; ++row) {
    Eight x = load(from + row * job.width);
    if (job.drop.below > 0) RowNoise(job.drop, row).apply(x, column);
    if (job.out != nullptr) store(static_cast<__nv_bfloat16*>(job.out) + row * all + column, x);
    for (int i = 0; i < kVector; ++i) sums.at[i] += x.at[i];
  }
  float* const to = job.partial + blockIdx.y * all + column;
  for (int i = 0; i < kVector; ++i) to[i] = sums.at[i];
}

struct Outs {
  float* at[JoinJob::kMost];
};

/// 32 columns and 8 rows at a time to a block.
__global__ void add_columns_kernel(const float* partial, int64_t count, int64_t stride, int64_t width,
                                   Outs outs) {
  __shared__ float sums[8][kWarp + 1];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0;
  if (column < width) {
    const float* const from = partial + blockIdx.y * width + column;
#pragma unroll 4
    for (int64_t row = threadIdx.y; row < count; row += 8) sum += from[row * stride];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= width) return;
  for (int i = 1; i < 8; ++i) sum += sums[i][threadIdx.x];
  outs.at[blockIdx.y][column] += sum;
}

/// A block to each place where a new number begins; the others have nothing to do.
__global__ void scatter_kernel(ScatterJob job) {
  const int64_t begin = blockIdx.x, id = job.ids[begin];
  if (id == job.pad || (begin > 0 && job.ids[begin - 1] == id)) return;
  for (int64_t column = threadIdx.x * kVector; column < job.width; column += kThreads * kVector) {
    Eight sum{};
    for (int64_t i = begin; i < job.count && job.ids[i] == id; ++i) {
      const Eight x = load(static_cast<const __nv_bfloat16*>(job.rows) + job.order[i] * job.width + column);
      for (int k = 0; k < kVector; ++k) sum.at[k] += x.at[k];
    }
    float* const to = job.table + id * job.width + column;
    for (int k = 0; k < kVector; ++k) to[k] += sum.at[k];
  }
}

int64_t rows_each(int64_t rows) {
  const int64_t chunks = row_chunks(rows);
  return (rows + chunks - 1) / chunks;
}

}  // namespace

int64_t row_chunks(int64_t rows) { return std::clamp<int64_t>((rows + 7) / 8, 1, 256); }

void launch(const GeluJob& job, void* stream) {
  const dim3 grid(across(job.width), static_cast<unsigned>(std::min<int64_t>(job.rows, 2048)));
  gelu_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

void launch(const GeluGradJob& job, void* stream) {
  const int64_t chunks = row_chunks(job.rows);
  const dim3 grid(across(job.width), static_cast<unsigned>(chunks));
  gelu_grad_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job, rows_each(job.rows));
  add_columns_of_parts(job.partial, chunks, job.width, job.width, &job.bias_grad, 1, stream);
}

void launch(const JoinJob& job, void* stream) {
  const int64_t chunks = row_chunks(job.rows), all = job.parts * job.width;
  const dim3 grid(across(all), static_cast<unsigned>(chunks));
  join_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job, rows_each(job.rows));
  if (job.sums[0] == nullptr) return;
  add_columns_of_parts(job.partial, chunks, all, job.width, job.sums, job.parts, stream);
}

void launch(const ScatterJob& job, void* stream) {
  scatter_kernel<<<static_cast<unsigned>(job.count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

void add_columns_of_parts(const float* partial, int64_t count, int64_t stride, int64_t width,
                          float* const* out, int parts, void* stream) {
  Outs outs{};
  for (int i = 0; i < parts; ++i) outs.at[i] = out[i];
  const dim3 grid(static_cast<unsigned>((width + kWarp - 1) / kWarp), static_cast<unsigned>(parts));
  add_columns_kernel<<<grid, dim3(kWarp, 8), 0, static_cast<cudaStream_t>(stream)>>>(partial, count, stride,
                                                                                     width, outs);
}

}  // namespace syncopate::gpu
