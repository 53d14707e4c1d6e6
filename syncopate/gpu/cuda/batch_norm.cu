// Batch norm over rows of channels. A block has whole rows: as many threads side by side as a row has vectors of
// eight, the rest below each other. Blocks write sums of their own, which a small kernel adds up in order.
#include <algorithm>

#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kThreads = 256;

struct Place {
  int64_t column, row, step;  ///< the first row of this thread, and how many further the next one is
  int lanes;                  ///< threads side by side
};

__device__ Place place_of(int64_t channels) {
  const int lanes = static_cast<int>(channels / kVector), rows = kThreads / lanes;
  return {static_cast<int64_t>(threadIdx.x % lanes) * kVector,
          static_cast<int64_t>(blockIdx.x) * rows + threadIdx.x / lanes, static_cast<int64_t>(gridDim.x) * rows,
          lanes};
}

/// Adds up what a block's threads have for the same columns, in order; the threads of the first row have the sums.
__device__ void sum_columns(Eight& mine, int lanes) {
  __shared__ float room[kThreads][kVector + 1];
  for (int i = 0; i < kVector; ++i) room[threadIdx.x][i] = mine.at[i];
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < lanes) {
    for (int other = static_cast<int>(threadIdx.x) + lanes; other < kThreads; other += lanes) {
      for (int i = 0; i < kVector; ++i) mine.at[i] += room[other][i];
    }
  }
  __syncthreads();
}

__device__ void write_sums(float* partial, int64_t channels, const Place& place, Eight first, Eight second) {
  sum_columns(first, place.lanes);
  sum_columns(second, place.lanes);
  if (static_cast<int>(threadIdx.x) >= place.lanes) return;
  float* const to = partial + static_cast<int64_t>(blockIdx.x) * 2 * channels + place.column;
  for (int i = 0; i < kVector; ++i) {
    to[i] = first.at[i];
    to[channels + i] = second.at[i];
  }
}

/// Sums of values and squares, off by each channel's first value: so large means cost no precision.
__global__ void collect_kernel(BatchNormJob job) {
  const Place place = place_of(job.channels);
  const auto* const x = static_cast<const __nv_bfloat16*>(job.x);
  const Eight origin = load(x + place.column);
  Eight sum{}, squares{};
#pragma unroll 4
  for (int64_t row = place.row; row < job.rows; row += place.step) {
    const Eight value = load(x + row * job.channels + place.column);
    for (int i = 0; i < kVector; ++i) {
      const float off = value.at[i] - origin.at[i];
      sum.at[i] += off;
      squares.at[i] += off * off;
    }
  }
  write_sums(job.partial, job.channels, place, sum, squares);
}

struct Sums {
  double first = 0, second = 0;
};

constexpr int kColumns = 32, kRows = 32;  // of a block that adds up partial sums: threads side by side read neighbours

__device__ int64_t channel_of_thread() { return static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x; }

/// Both sums of this thread's channel; the threads of the first row have them.
__device__ Sums total(const float* partial, int64_t channels, int blocks) {
  __shared__ double room[2][kRows][kColumns];
  const int64_t channel = channel_of_thread();
  Sums sums;
  if (channel < channels) {
#pragma unroll 4
    for (int block = static_cast<int>(threadIdx.y); block < blocks; block += kRows) {
      const float* const from = partial + static_cast<int64_t>(block) * 2 * channels + channel;
      sums.first += from[0];
      sums.second += from[channels];
    }
  }
  room[0][threadIdx.y][threadIdx.x] = sums.first;
  room[1][threadIdx.y][threadIdx.x] = sums.second;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int row = 1; row < kRows; ++row) {
      sums.first += room[0][row][threadIdx.x];
      sums.second += room[1][row][threadIdx.x];
    }
  }
  return sums;
}

__global__ void settle_kernel(BatchNormJob job, int blocks) {
  const int64_t channel = channel_of_thread();
  const Sums sums = total(job.partial, job.channels, blocks);
  if (threadIdx.y > 0 || channel >= job.channels) return;
  const double count = static_cast<double>(job.rows), off = sums.first / count;
  const double mean = off + static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(job.x)[channel]));
  const double var = fmax(sums.second / count - off * off, 0.0);
  job.stats[2 * channel] = static_cast<float>(mean);
  job.stats[2 * channel + 1] = static_cast<float>(rsqrt(var + static_cast<double>(job.eps)));
  if (job.running_mean == nullptr) return;
  const double keep = 1 - static_cast<double>(job.momentum);
  job.running_mean[channel] = static_cast<float>(keep * job.running_mean[channel] + job.momentum * mean);
  // The running variance is that of what the batch was drawn from.
  job.running_var[channel] =
      static_cast<float>(keep * job.running_var[channel] + job.momentum * var * count / fmax(count - 1, 1.0));
}

__device__ Eight deviations(const float* stats, int64_t column, Eight& mean) {
  Eight inverse;
  for (int i = 0; i < kVector; ++i) {
    mean.at[i] = stats[2 * (column + i)];
    inverse.at[i] = stats[2 * (column + i) + 1];
  }
  return inverse;
}

/// Of the channels of a vector: what a value is multiplied by, and what is added.
struct Lines {
  Eight slope, level;
};

__device__ Lines lines_of(const float* weight, const float* bias, const float* stats, int64_t column) {
  Eight mean;
  const Eight inverse = deviations(stats, column, mean);
  const Eight w = load(weight + column), b = load(bias + column);
  Lines lines;
  for (int i = 0; i < kVector; ++i) {
    lines.slope.at[i] = w.at[i] * inverse.at[i];
    lines.level.at[i] = b.at[i] - mean.at[i] * lines.slope.at[i];
  }
  return lines;
}

__global__ void transform_kernel(BatchNormJob job) {
  const Place place = place_of(job.channels);
  const Lines lines = lines_of(job.weight, job.bias, job.stats, place.column);
#pragma unroll 4
  for (int64_t row = place.row; row < job.rows; row += place.step) {
    const int64_t at = row * job.channels + place.column;
    Eight x = load(static_cast<const __nv_bfloat16*>(job.x) + at);
    for (int i = 0; i < kVector; ++i) x.at[i] = x.at[i] * lines.slope.at[i] + lines.level.at[i];
    if (job.added != nullptr) {
      const Eight more = load(static_cast<const __nv_bfloat16*>(job.added) + at);
      for (int i = 0; i < kVector; ++i) x.at[i] += more.at[i];
    }
    if (job.relu) {
      for (int i = 0; i < kVector; ++i) x.at[i] = fmaxf(x.at[i], 0);
    }
    store(static_cast<__nv_bfloat16*>(job.out) + at, x);
  }
}

/// The gradient before relu. Where nothing was added, what relu let through follows from `x`.
__device__ Eight grad_at(const BatchNormGradJob& job, const Lines& lines, const Eight& x, int64_t at) {
  Eight grad = load(static_cast<const __nv_bfloat16*>(job.grad) + at);
  if (!job.relu) return grad;
  if (job.out != nullptr) {
    const Eight out = load(static_cast<const __nv_bfloat16*>(job.out) + at);
    for (int i = 0; i < kVector; ++i) grad.at[i] = out.at[i] > 0 ? grad.at[i] : 0.0f;
  } else {
    for (int i = 0; i < kVector; ++i)
      grad.at[i] = x.at[i] * lines.slope.at[i] + lines.level.at[i] > 0 ? grad.at[i] : 0.0f;
  }
  return grad;
}

__global__ void reduce_kernel(BatchNormGradJob job) {
  const Place place = place_of(job.channels);
  Eight mean, sum{}, slope{};
  const Eight inverse = deviations(job.stats, place.column, mean);
  const Lines lines = lines_of(job.weight, job.bias, job.stats, place.column);
#pragma unroll 2
  for (int64_t row = place.row; row < job.rows; row += place.step) {
    const int64_t at = row * job.channels + place.column;
    const Eight x = load(static_cast<const __nv_bfloat16*>(job.x) + at), grad = grad_at(job, lines, x, at);
    if (job.added_grad != nullptr) store(static_cast<__nv_bfloat16*>(job.added_grad) + at, grad);
    for (int i = 0; i < kVector; ++i) {
      sum.at[i] += grad.at[i];
      slope.at[i] += grad.at[i] * (x.at[i] - mean.at[i]) * inverse.at[i];
    }
  }
  write_sums(job.partial, job.channels, place, sum, slope);
}

__global__ void settle_grad_kernel(BatchNormGradJob job, int blocks) {
  const int64_t channel = channel_of_thread();
  const Sums sums = total(job.partial, job.channels, blocks);
  if (threadIdx.y > 0 || channel >= job.channels) return;
  job.bias_grad[channel] += static_cast<float>(sums.first);
  job.weight_grad[channel] += static_cast<float>(sums.second);
  job.means[2 * channel] = static_cast<float>(sums.first / static_cast<double>(job.rows));
  job.means[2 * channel + 1] = static_cast<float>(sums.second / static_cast<double>(job.rows));
}

__global__ void transform_grad_kernel(BatchNormGradJob job) {
  const Place place = place_of(job.channels);
  Eight mean, level;
  const Eight inverse = deviations(job.stats, place.column, mean);
  const Eight slope = deviations(job.means, place.column, level);
  const Lines lines = lines_of(job.weight, job.bias, job.stats, place.column);
#pragma unroll 2
  for (int64_t row = place.row; row < job.rows; row += place.step) {
    const int64_t at = row * job.channels + place.column;
    Eight x = load(static_cast<const __nv_bfloat16*>(job.x) + at);
    const Eight grad = job.added_grad != nullptr ? load(static_cast<const __nv_bfloat16*>(job.added_grad) + at)
                                                 : grad_at(job, lines, x, at);
    for (int i = 0; i < kVector; ++i) {
      const float unit = (x.at[i] - mean.at[i]) * inverse.at[i];
      x.at[i] = lines.slope.at[i] * (grad.at[i] - level.at[i] - unit * slope.at[i]);
    }
    store(static_cast<__nv_bfloat16*>(job.x_grad) + at, x);
  }
}

unsigned wide(int64_t rows, int64_t channels) {  // enough blocks to keep every multiprocessor loading
  const int64_t rows_of_block = kThreads / (channels / kVector);
  return static_cast<unsigned>(std::clamp<int64_t>((rows + 4 * rows_of_block - 1) / (4 * rows_of_block), 1, 1056));
}

unsigned settling(int64_t channels) { return static_cast<unsigned>((channels + kColumns - 1) / kColumns); }

}  // namespace

int norm_passes(int64_t rows, int64_t channels) {
  return static_cast<int>(std::min<unsigned>(wide(rows, channels), 264));
}

void launch(const BatchNormJob& job, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int passes = norm_passes(job.rows, job.channels);
  collect_kernel<<<static_cast<unsigned>(passes), kThreads, 0, on>>>(job);
  settle_kernel<<<settling(job.channels), dim3(kColumns, kRows), 0, on>>>(job, passes);
  transform_kernel<<<wide(job.rows, job.channels), kThreads, 0, on>>>(job);
}

void launch(const BatchNormGradJob& job, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int passes = norm_passes(job.rows, job.channels);
  reduce_kernel<<<static_cast<unsigned>(passes), kThreads, 0, on>>>(job);
  settle_grad_kernel<<<settling(job.channels), dim3(kColumns, kRows), 0, on>>>(job, passes);
  transform_grad_kernel<<<wide(job.rows, job.channels), kThreads, 0, on>>>(job);
}

}  // namespace syncopate::gpu
