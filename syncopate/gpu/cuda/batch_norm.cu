// Batch norm over rows of channels. Where a channel's values are few, a block has all rows of eight channels and does
// everything at once. Else a block has whole rows: as many threads side by side as a row has vectors of eight, the rest
// below each other; blocks write sums of their own, which a small kernel adds up in order.
#include <algorithm>

#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

/// What is done with a value of eight channels: slope * x + level.
struct Lines {
  Eight slope, level;
};

struct Sums {
  double first = 0, second = 0;
};

using Vector = uint4;  // eight numbers as they lie in memory

__device__ Vector raw(const void* from, int64_t at) {
  return *reinterpret_cast<const Vector*>(static_cast<const __nv_bfloat16*>(from) + at);
}

/// What no thread writes meanwhile: such loads need not wait for stores.
__device__ Vector steady(const void* from, int64_t at) {
  return __ldg(reinterpret_cast<const Vector*>(static_cast<const __nv_bfloat16*>(from) + at));
}

__device__ Eight numbers(const Vector& vector) { return load(reinterpret_cast<const __nv_bfloat16*>(&vector)); }

__device__ void put(void* to, int64_t at, const Eight& eight) { store(static_cast<__nv_bfloat16*>(to) + at, eight); }

// --- What both ways of going over the rows compute -------------------------------------------------------------

/// Sums of values and squares, off by each channel's first value: so large means cost no precision.
struct Moments {
  Eight sum{}, squares{};

  __device__ void add(const Eight& x, const Eight& origin) {
    for (int i = 0; i < kVector; ++i) {
      const float off = x.at[i] - origin.at[i];
      sum.at[i] += off;
      squares.at[i] += off * off;
    }
  }
};

/// Of one channel, from its sums: writes what later passes need, and the running statistics.
__device__ void settle(const BatchNormJob& job, int64_t channel, const Sums& sums) {
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

__device__ Lines lines_of(const float* weight, const float* bias, const float* stats, int64_t column) {
  const Eight w = load(weight + column), b = load(bias + column);
  Lines lines;
  for (int i = 0; i < kVector; ++i) {
    const float mean = stats[2 * (column + i)], inverse = stats[2 * (column + i) + 1];
    lines.slope.at[i] = w.at[i] * inverse;
    lines.level.at[i] = b.at[i] - mean * lines.slope.at[i];
  }
  return lines;
}

/// `at` is where the first of them lies.
__device__ Eight transformed(const BatchNormJob& job, const Lines& lines, Eight x, const Vector& added, int64_t at) {
  for (int i = 0; i < kVector; ++i) x.at[i] = x.at[i] * lines.slope.at[i] + lines.level.at[i];
  if (job.added != nullptr) {
    const Eight more = numbers(added);
    for (int i = 0; i < kVector; ++i) x.at[i] += more.at[i];
  }
  if (job.let_through != nullptr) {
    unsigned bits = 0;
    for (int i = 0; i < kVector; ++i) bits |= x.at[i] > 0 ? 1u << i : 0u;
    job.let_through[at / kVector] = static_cast<uint8_t>(bits);
  }
  if (job.relu) {
    for (int i = 0; i < kVector; ++i) x.at[i] = fmaxf(x.at[i], 0);
  }
  return x;
}

/// What reached the output: one gradient, or two that nobody has added yet.
__device__ Eight whole_grad(const Vector& one, const Vector& other, bool two) {
  Eight grad = numbers(one);
  if (!two) return grad;
  const Eight more = numbers(other);
  for (int i = 0; i < kVector; ++i) grad.at[i] += more.at[i];
  return grad;
}

/// The gradient before relu. Where nothing was added, what relu let through follows from `x`.
__device__ Eight before_relu(const BatchNormGradJob& job, const Lines& lines, const Eight& x, Eight grad,
                             unsigned let_through) {
  if (!job.relu) return grad;
  if (job.let_through != nullptr) {
    for (int i = 0; i < kVector; ++i) grad.at[i] = (let_through >> i & 1u) != 0 ? grad.at[i] : 0.0f;
  } else {
    for (int i = 0; i < kVector; ++i)
      grad.at[i] = x.at[i] * lines.slope.at[i] + lines.level.at[i] > 0 ? grad.at[i] : 0.0f;
  }
  return grad;
}

/// Sums of gradients, and of gradients times what x is off the mean by.
struct GradMoments {
  Eight sum{}, slope{};

  __device__ void add(const Eight& grad, const Eight& x, const Eight& mean) {
    for (int i = 0; i < kVector; ++i) {
      sum.at[i] += grad.at[i];
      slope.at[i] += grad.at[i] * (x.at[i] - mean.at[i]);
    }
  }
};

__device__ Eight means_of(const float* stats, int64_t column) {
  Eight mean;
  for (int i = 0; i < kVector; ++i) mean.at[i] = stats[2 * (column + i)];
  return mean;
}

__device__ void settle(const BatchNormGradJob& job, int64_t channel, const Sums& sums) {
  const double slope = sums.second * static_cast<double>(job.stats[2 * channel + 1]);
  job.bias_grad[channel] += static_cast<float>(sums.first);
  job.weight_grad[channel] += static_cast<float>(slope);
  job.means[2 * channel] = static_cast<float>(sums.first / static_cast<double>(job.rows));
  job.means[2 * channel + 1] = static_cast<float>(slope / static_cast<double>(job.rows));
}

/// The gradient of x is of_grad * grad + of_x * x + level.
struct GradLines {
  Eight of_grad, of_x, level;
};

__device__ GradLines grad_lines(const BatchNormGradJob& job, const Lines& lines, int64_t column) {
  GradLines made;
  for (int i = 0; i < kVector; ++i) {
    const float mean = job.stats[2 * (column + i)], inverse = job.stats[2 * (column + i) + 1];
    const float level = job.means[2 * (column + i)], slope = job.means[2 * (column + i) + 1];
    made.of_grad.at[i] = lines.slope.at[i];
    made.of_x.at[i] = -lines.slope.at[i] * inverse * slope;
    made.level.at[i] = -lines.slope.at[i] * level - made.of_x.at[i] * mean;
  }
  return made;
}

__device__ Eight grad_of_x(const GradLines& lines, const Eight& grad, const Eight& x) {
  Eight made;
  for (int i = 0; i < kVector; ++i)
    made.at[i] = lines.of_grad.at[i] * grad.at[i] + (lines.of_x.at[i] * x.at[i] + lines.level.at[i]);
  return made;
}

// --- Weights of convolutions -------------------------------------------------------------------------------------

/// grad [outputs, channels, pixels] += laid [outputs, pixels, all channels], a block for an output and 1 << shift
/// channels.
__global__ void add_laid_kernel(LaidGradJob job, int shift) {
  extern __shared__ float tile[];  // [pixels, (1 << shift) + 1]
  const int wide = 1 << shift;
  const int64_t output = blockIdx.x, first = static_cast<int64_t>(blockIdx.y) * wide;
  const int channels = static_cast<int>(min(job.channels - first, int64_t{wide})), pixels = job.pixels;
  const auto* const laid = static_cast<const __nv_bfloat16*>(job.laid) + output * pixels * job.laid_channels + first;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < pixels << shift; i += blockDim.x) {
    const int pixel = i >> shift, channel = i & (wide - 1);
    if (channel < channels) tile[pixel * (wide + 1) + channel] = __bfloat162float(laid[pixel * job.laid_channels + channel]);
  }
  __syncthreads();
  float* const grad = job.grad + (output * job.channels + first) * pixels;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < channels * pixels; i += blockDim.x)
    grad[i] += tile[i % pixels * (wide + 1) + i / pixels];
}

// --- Few values a channel: a block for eight channels -----------------------------------------------------------

constexpr int kTall = 1024;  // threads, a row each
constexpr int kKept = 2;     // rows of a thread, at most: with more, one block's loads take longer than two launches

/// The sums of a block's threads, both of all eight channels: `settle_one(channel of the eight, its sums)` is called by a
/// thread for each, and the block goes on when all are done.
template <typename Settle>
__device__ void settle_block(const Eight& first, const Eight& second, const Settle& settle_one) {
  constexpr int kWarps = kTall / kWarp;
  __shared__ float room[2 * kVector][kWarps];
  __shared__ double totals[2 * kVector];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const float one = sum_of_warp(first.at[i]), other = sum_of_warp(second.at[i]);
    if (lane == 0) {
      room[i][warp] = one;
      room[kVector + i][warp] = other;
    }
  }
  __syncthreads();
  if (warp < 2 * kVector) {
    double total = room[warp][lane];
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) total += __shfl_xor_sync(kAll, total, offset);
    if (lane == 0) totals[warp] = total;
  }
  __syncthreads();
  if (threadIdx.x < kVector) settle_one(threadIdx.x, Sums{totals[threadIdx.x], totals[kVector + threadIdx.x]});
  __syncthreads();
}

/// kRows: of a thread, at most.
template <int kRows>
__global__ void __launch_bounds__(kTall) few_rows_kernel(BatchNormJob job) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kVector;
  const auto at = [&](int k) { return (threadIdx.x + static_cast<int64_t>(k) * kTall) * job.channels + column; };
  const auto there = [&](int k) { return threadIdx.x + static_cast<int64_t>(k) * kTall < job.rows; };
  const Eight origin = numbers(raw(job.x, column));
  Vector x[kRows];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (there(k)) x[k] = raw(job.x, at(k));
  }
  Moments moments;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (there(k)) moments.add(numbers(x[k]), origin);
  }
  settle_block(moments.sum, moments.squares, [&](int i, const Sums& sums) { settle(job, column + i, sums); });
  const Lines lines = lines_of(job.weight, job.bias, job.stats, column);
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (!there(k)) continue;
    const Vector added = job.added != nullptr ? steady(job.added, at(k)) : Vector{};
    put(job.out, at(k), transformed(job, lines, numbers(x[k]), added, at(k)));
  }
}

template <int kRows>
__global__ void __launch_bounds__(kTall) few_rows_grad_kernel(BatchNormGradJob job) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kVector;
  const auto at = [&](int k) { return (threadIdx.x + static_cast<int64_t>(k) * kTall) * job.channels + column; };
  const auto there = [&](int k) { return threadIdx.x + static_cast<int64_t>(k) * kTall < job.rows; };
  const Lines lines = lines_of(job.weight, job.bias, job.stats, column);
  const Eight mean = means_of(job.stats, column);
  const bool two = job.other_grad != nullptr;
  GradMoments moments;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (!there(k)) continue;
    const Vector grad = steady(job.grad, at(k)), other = two ? steady(job.other_grad, at(k)) : Vector{};
    const unsigned bits = job.let_through != nullptr ? __ldg(job.let_through + at(k) / kVector) : 0u;
    const Eight x = numbers(steady(job.x, at(k)));
    const Eight before = before_relu(job, lines, x, whole_grad(grad, other, two), bits);
    if (job.added_grad != nullptr) put(job.added_grad, at(k), before);
    moments.add(before, x, mean);
  }
  settle_block(moments.sum, moments.slope, [&](int i, const Sums& sums) { settle(job, column + i, sums); });
  const GradLines all = grad_lines(job, lines, column);
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (!there(k)) continue;
    const Eight x = numbers(steady(job.x, at(k)));
    Eight before;
    if (job.added_grad != nullptr) {  // this thread has just written it
      before = numbers(raw(job.added_grad, at(k)));
    } else {
      const Vector other = two ? steady(job.other_grad, at(k)) : Vector{};
      before = before_relu(job, lines, x, whole_grad(steady(job.grad, at(k)), other, two), 0);
    }
    put(job.x_grad, at(k), grad_of_x(all, before, x));
  }
}

// --- Many values a channel: blocks of whole rows ----------------------------------------------------------------

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

/// Calls use(k, where) for up to kAtOnce rows of this thread at a time, `read` for all of them before: so that many loads
/// are under way.
template <int kAtOnce, typename Read, typename Use>
__device__ void go_over(const Place& place, int64_t rows, int64_t channels, const Read& read, const Use& use) {
  for (int64_t row = place.row; row < rows; row += kAtOnce * place.step) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t here = row + k * place.step;
      if (here < rows) read(k, here * channels + place.column);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t here = row + k * place.step;
      if (here < rows) use(k, here * channels + place.column);
    }
  }
}

/// Adds up what a block's threads have for the same channels, in order, into `to` [channels].
__device__ void sum_of_block(const Eight& mine, const Place& place, int channels, float* to) {
  __shared__ float room[kThreads * kVector];  // rows of channels
  __shared__ float parts[kThreads];
  const int row = static_cast<int>(threadIdx.x) / place.lanes, rows = kThreads / place.lanes;
  for (int i = 0; i < kVector; ++i) room[row * channels + place.column + i] = mine.at[i];
  __syncthreads();
  const int shares = channels < kThreads ? kThreads / channels : 1;  // of a channel's rows
  for (int column = static_cast<int>(threadIdx.x) % channels; column < channels; column += kThreads) {
    const int share = shares > 1 ? static_cast<int>(threadIdx.x) / channels : 0, each = max(rows / shares, 1);
    float sum = 0;
    for (int r = share * each; r < min((share + 1) * each, rows); ++r) sum += room[r * channels + column];
    if (shares == 1) {
      to[column] = sum;
    } else {
      parts[threadIdx.x] = sum;
    }
  }
  __syncthreads();
  if (shares > 1 && static_cast<int>(threadIdx.x) < channels) {
    float sum = 0;
    for (int share = 0; share < shares; ++share) sum += parts[share * channels + static_cast<int>(threadIdx.x)];
    to[threadIdx.x] = sum;
  }
  __syncthreads();
}

__device__ void write_sums(float* partial, int64_t channels, const Place& place, const Eight& first,
                           const Eight& second) {
  float* const to = partial + static_cast<int64_t>(blockIdx.x) * 2 * channels;
  sum_of_block(first, place, static_cast<int>(channels), to);
  sum_of_block(second, place, static_cast<int>(channels), to + channels);
}

__global__ void __launch_bounds__(kThreads) collect_kernel(BatchNormJob job) {
  constexpr int kAtOnce = 8;
  const Place place = place_of(job.channels);
  const Eight origin = numbers(raw(job.x, place.column));
  Moments moments;
  Vector x[kAtOnce];
  go_over<kAtOnce>(
      place, job.rows, job.channels, [&](int k, int64_t at) { x[k] = raw(job.x, at); },
      [&](int k, int64_t) { moments.add(numbers(x[k]), origin); });
  write_sums(job.partial, job.channels, place, moments.sum, moments.squares);
}

__global__ void __launch_bounds__(kThreads, 2) reduce_kernel(BatchNormGradJob job) {
  constexpr int kAtOnce = 4;
  const Place place = place_of(job.channels);
  const Lines lines = lines_of(job.weight, job.bias, job.stats, place.column);
  const Eight mean = means_of(job.stats, place.column);
  GradMoments moments;
  const bool two = job.other_grad != nullptr;
  Vector x[kAtOnce], grad[kAtOnce], other[kAtOnce];
  unsigned bits[kAtOnce] = {};
  go_over<kAtOnce>(
      place, job.rows, job.channels,
      [&](int k, int64_t at) {
        x[k] = raw(job.x, at);
        grad[k] = raw(job.grad, at);
        if (two) other[k] = raw(job.other_grad, at);
        if (job.let_through != nullptr) bits[k] = job.let_through[at / kVector];
      },
      [&](int k, int64_t at) {
        const Eight value = numbers(x[k]);
        const Eight before = before_relu(job, lines, value, whole_grad(grad[k], other[k], two), bits[k]);
        if (job.added_grad != nullptr) put(job.added_grad, at, before);
        moments.add(before, value, mean);
      });
  write_sums(job.partial, job.channels, place, moments.sum, moments.slope);
}

constexpr int kColumns = 32, kRows = 32;  // of a block that adds up partial sums: threads side by side read neighbours

/// Both sums of a channel over all blocks.
template <typename Job>
__global__ void settle_kernel(Job job, int blocks) {
  __shared__ double room[2][kRows][kColumns];
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  Sums sums;
  if (channel < job.channels) {
#pragma unroll 4
    for (int block = static_cast<int>(threadIdx.y); block < blocks; block += kRows) {
      const float* const from = job.partial + static_cast<int64_t>(block) * 2 * job.channels + channel;
      sums.first += from[0];
      sums.second += from[job.channels];
    }
  }
  room[0][threadIdx.y][threadIdx.x] = sums.first;
  room[1][threadIdx.y][threadIdx.x] = sums.second;
  for (int half = kRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) < half) {
      room[0][threadIdx.y][threadIdx.x] += room[0][threadIdx.y + half][threadIdx.x];
      room[1][threadIdx.y][threadIdx.x] += room[1][threadIdx.y + half][threadIdx.x];
    }
  }
  if (threadIdx.y == 0 && channel < job.channels)
    settle(job, channel, {room[0][0][threadIdx.x], room[1][0][threadIdx.x]});
}

__global__ void __launch_bounds__(kThreads) transform_kernel(BatchNormJob job) {
  constexpr int kAtOnce = 4;
  const Place place = place_of(job.channels);
  const Lines lines = lines_of(job.weight, job.bias, job.stats, place.column);
  Vector x[kAtOnce], added[kAtOnce];
  go_over<kAtOnce>(
      place, job.rows, job.channels,
      [&](int k, int64_t at) {
        x[k] = raw(job.x, at);
        if (job.added != nullptr) added[k] = raw(job.added, at);
      },
      [&](int k, int64_t at) { put(job.out, at, transformed(job, lines, numbers(x[k]), added[k], at)); });
}

__global__ void __launch_bounds__(kThreads) transform_grad_kernel(BatchNormGradJob job) {
  constexpr int kAtOnce = 4;
  const Place place = place_of(job.channels);
  const Lines lines = lines_of(job.weight, job.bias, job.stats, place.column);
  const GradLines all = grad_lines(job, lines, place.column);
  const bool known = job.added_grad != nullptr;  // what is before relu
  const bool two = !known && job.other_grad != nullptr;
  Vector x[kAtOnce], grad[kAtOnce], other[kAtOnce];
  go_over<kAtOnce>(
      place, job.rows, job.channels,
      [&](int k, int64_t at) {
        x[k] = raw(job.x, at);
        grad[k] = raw(known ? job.added_grad : job.grad, at);
        if (two) other[k] = raw(job.other_grad, at);
      },
      [&](int k, int64_t at) {
        const Eight value = numbers(x[k]), given = whole_grad(grad[k], other[k], two);
        put(job.x_grad, at, grad_of_x(all, known ? given : before_relu(job, lines, value, given, 0), value));
      });
}

/// Blocks that keep every multiprocessor loading, with four rows a thread: each reads its channels' factors first.
unsigned wide(int64_t rows, int64_t channels) {
  const int64_t rows_of_block = 4 * kThreads / (channels / kVector);
  return static_cast<unsigned>(std::clamp<int64_t>((rows + rows_of_block - 1) / rows_of_block, 1, 1056));
}

unsigned settling(int64_t channels) { return static_cast<unsigned>((channels + kColumns - 1) / kColumns); }

bool few(int64_t rows) { return rows <= kTall * kKept; }

}  // namespace

void launch(const LaidGradJob& job, void* stream) {
  const int shift = job.channels <= 64 || job.pixels > 25 ? 6 : job.channels <= 128 ? 7 : 8;  // of what fits
  const dim3 blocks(static_cast<unsigned>(job.outputs), static_cast<unsigned>((job.channels - 1) / (1 << shift) + 1));
  const size_t room = static_cast<size_t>(job.pixels) * ((1u << shift) + 1) * sizeof(float);
  add_laid_kernel<<<blocks, kThreads, room, static_cast<cudaStream_t>(stream)>>>(job, shift);
}

int norm_passes(int64_t rows, int64_t channels) {
  return static_cast<int>(std::min<unsigned>(wide(rows, channels), 264));
}

void launch(const BatchNormJob& job, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (few(job.rows)) {
    const auto blocks = static_cast<unsigned>(job.channels / kVector);
    (job.rows <= kTall ? few_rows_kernel<1> : few_rows_kernel<kKept>)<<<blocks, kTall, 0, on>>>(job);
    return;
  }
  const int passes = norm_passes(job.rows, job.channels);
  collect_kernel<<<static_cast<unsigned>(passes), kThreads, 0, on>>>(job);
  settle_kernel<<<settling(job.channels), dim3(kColumns, kRows), 0, on>>>(job, passes);
  transform_kernel<<<wide(job.rows, job.channels), kThreads, 0, on>>>(job);
}

void launch(const BatchNormGradJob& job, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (few(job.rows)) {
    const auto blocks = static_cast<unsigned>(job.channels / kVector);
    (job.rows <= kTall ? few_rows_grad_kernel<1> : few_rows_grad_kernel<kKept>)<<<blocks, kTall, 0, on>>>(job);
    return;
  }
  const int passes = norm_passes(job.rows, job.channels);
  reduce_kernel<<<static_cast<unsigned>(passes), kThreads, 0, on>>>(job);
  settle_kernel<<<settling(job.channels), dim3(kColumns, kRows), 0, on>>>(job, passes);
  transform_grad_kernel<<<wide(job.rows, job.channels), kThreads, 0, on>>>(job);
}

}  // namespace syncopate::gpu
