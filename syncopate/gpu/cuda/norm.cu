// Dropout, residual and LayerNorm in one pass, forwards and backwards; embeddings likewise. A warp has a row
// in its registers: kVectors vectors of eight a lane.
#include <algorithm>

#include "syncopate/gpu/cuda/rows.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kWarps = 8;  // of a block

template <int kVectors>
struct Row {
  Eight part[kVectors];

  template <typename Visit>
  __device__ static void each(int64_t width, const Visit& visit) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = (static_cast<int64_t>(v) * kWarp + lane) * kVector;
      if (column < width) visit(v, column);
    }
  }
};

/// Mean and 1 / deviation of a row.
template <int kVectors>
__device__ float2 statistics(const Row<kVectors>& row, int64_t width, float eps) {
  float sum = 0;
  Row<kVectors>::each(width, [&](int v, int64_t) {
    for (int i = 0; i < kVector; ++i) sum += row.part[v].at[i];
  });
  const float mean = sum_of_warp(sum) / static_cast<float>(width);
  float squares = 0;
  Row<kVectors>::each(width, [&](int v, int64_t) {
    for (int i = 0; i < kVector; ++i) {
      const float off = row.part[v].at[i] - mean;
      squares += off * off;
    }
  });
  return {mean, rsqrtf(sum_of_warp(squares) / static_cast<float>(width) + eps)};
}

__device__ Eight normed(const Eight& x, float2 stats, const float* weight, const float* shift) {
  const Eight w = load(weight), b = load(shift);
  Eight made;
  for (int i = 0; i < kVector; ++i) made.at[i] = (x.at[i] - stats.x) * stats.y * w.at[i] + b.at[i];
  return made;
}

template <int kVectors>
__global__ void norm_kernel(NormJob job) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= job.rows) return;
  const int64_t width = job.width;
  const auto* const residual = static_cast<const __nv_bfloat16*>(job.residual) + row * job.residual_stride;
  Row<kVectors> x;
  x.each(width, [&](int v, int64_t column) { x.part[v] = load(residual + column); });
  if (job.dense != nullptr) {
    const auto* const dense = static_cast<const __nv_bfloat16*>(job.dense) + row * width;
    auto* const sum = static_cast<__nv_bfloat16*>(job.sum) + row * width;
    const RowNoise noise(job.drop, row);
    x.each(width, [&](int v, int64_t column) {
      Eight fresh = load(dense + column);
      const Eight bias = load(job.bias + column);
      for (int i = 0; i < kVector; ++i) fresh.at[i] += bias.at[i];
      noise.apply(fresh, column);
      for (int i = 0; i < kVector; ++i) x.part[v].at[i] += fresh.at[i];
      store(sum + column, x.part[v]);
    });
  }
  if (job.weight == nullptr) return;
  auto* const out = static_cast<__nv_bfloat16*>(job.out) + row * width;
  const float2 stats = statistics(x, width, job.eps);
  if (threadIdx.x % kWarp == 0) reinterpret_cast<float2*>(job.stats)[row] = stats;
  x.each(width, [&](int v, int64_t column) {
    store(out + column, normed(x.part[v], stats, job.weight + column, job.shift + column));
  });
}

/// Of embeddings: the sum that is normed.
template <int kVectors>
__device__ Row<kVectors> embedded(const EmbedJob& job, int64_t row) {
  const int64_t width = job.width;
  const auto* const word = static_cast<const __nv_bfloat16*>(job.word) + job.ids[row] * width;
  const auto* const type =
      job.types != nullptr ? static_cast<const __nv_bfloat16*>(job.type) + job.types[row] * width : nullptr;
  const auto* const place = static_cast<const __nv_bfloat16*>(job.position) + row % job.length * width;
  Row<kVectors> x;
  x.each(width, [&](int v, int64_t column) {
    const Eight a = load(word + column), b = load(place + column);
    for (int i = 0; i < kVector; ++i) x.part[v].at[i] = a.at[i] + b.at[i];
    if (type == nullptr) return;
    const Eight c = load(type + column);
    for (int i = 0; i < kVector; ++i) x.part[v].at[i] += c.at[i];
  });
  return x;
}

template <int kVectors>
__global__ void embed_kernel(EmbedJob job) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= job.rows) return;
  Row<kVectors> x = embedded<kVectors>(job, row);
  if (job.weight != nullptr) {
    const float2 stats = statistics(x, job.width, job.eps);
    if (threadIdx.x % kWarp == 0) reinterpret_cast<float2*>(job.stats)[row] = stats;
    x.each(job.width, [&](int v, int64_t column) {
      x.part[v] = normed(x.part[v], stats, job.weight + column, job.shift + column);
    });
  }
  auto* const out = static_cast<__nv_bfloat16*>(job.out) + row * job.width;
  const RowNoise noise(job.drop, row);
  x.each(job.width, [&](int v, int64_t column) {
    noise.apply(x.part[v], column);
    store(out + column, x.part[v]);
  });
}

/// What a block's warps added up, to `partial` [blocks, sums, width]: one warp after another, so that the
/// order is always the same.
template <int kVectors, int kSums>
__device__ void write_partial(Row<kVectors> (&sums)[kSums], int64_t width, float* partial) {
  extern __shared__ float room[];  // [width]
  const int warp = threadIdx.x / kWarp;
  for (int s = 0; s < kSums; ++s) {
    for (int turn = 0; turn < kWarps; ++turn) {
      if (turn == warp) {
        Row<kVectors>::each(width, [&](int v, int64_t column) {
          for (int i = 0; i < kVector; ++i) {
            room[column + i] = (turn == 0 ? 0.0f : room[column + i]) + sums[s].part[v].at[i];
          }
        });
      }
      __syncthreads();
    }
    float* const to = partial + (static_cast<int64_t>(blockIdx.x) * kSums + s) * width;
    for (int64_t column = threadIdx.x; column < width; column += blockDim.x) to[column] = room[column];
    __syncthreads();
  }
}

/// The gradient of what was normed, `x` with statistics `stats`, from that of the result; adds to the sums
/// over rows that are the parameters' gradients.
template <int kVectors>
__device__ Row<kVectors> norm_grad(const Row<kVectors>& grad, const Row<kVectors>& x, float2 stats,
                                   const float* weight, int64_t width, Row<kVectors>& weight_sum,
                                   Row<kVectors>& shift_sum) {
  float mean = 0, slope = 0;
  Row<kVectors> unit, pulled;
  unit.each(width, [&](int v, int64_t column) {
    const Eight w = load(weight + column);
    for (int i = 0; i < kVector; ++i) {
      const float g = grad.part[v].at[i], u = (x.part[v].at[i] - stats.x) * stats.y;
      weight_sum.part[v].at[i] += g * u;
      shift_sum.part[v].at[i] += g;
      unit.part[v].at[i] = u;
      pulled.part[v].at[i] = g * w.at[i];
      mean += g * w.at[i];
      slope += g * w.at[i] * u;
    }
  });
  mean = sum_of_warp(mean) / static_cast<float>(width);
  slope = sum_of_warp(slope) / static_cast<float>(width);
  Row<kVectors> made;
  made.each(width, [&](int v, int64_t) {
    for (int i = 0; i < kVector; ++i)
      made.part[v].at[i] = stats.y * (pulled.part[v].at[i] - mean - unit.part[v].at[i] * slope);
  });
  return made;
}

template <int kVectors>
__global__ void norm_grad_kernel(NormGradJob job) {
  const int64_t width = job.width, stride = static_cast<int64_t>(gridDim.x) * kWarps;
  Row<kVectors> sums[3] = {};
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; row < job.rows;
       row += stride) {
    Row<kVectors> grad, x;
    grad.each(width, [&](int v, int64_t column) {
      grad.part[v] = load(static_cast<const __nv_bfloat16*>(job.grad) + row * width + column);
      x.part[v] = load(static_cast<const __nv_bfloat16*>(job.sum) + row * width + column);
    });
    const float2 stats = reinterpret_cast<const float2*>(job.stats)[row];
    Row<kVectors> made = norm_grad(grad, x, stats, job.weight, width, sums[0], sums[1]);
    if (job.more != nullptr) {
      made.each(width, [&](int v, int64_t column) {
        const Eight more = load(static_cast<const __nv_bfloat16*>(job.more) + row * width + column);
        for (int i = 0; i < kVector; ++i) made.part[v].at[i] += more.at[i];
      });
    }
    const RowNoise noise(job.drop, row);
    made.each(width, [&](int v, int64_t column) {
      store(static_cast<__nv_bfloat16*>(job.sum_grad) + row * width + column, made.part[v]);
      Eight dense = made.part[v];
      noise.apply(dense, column);
      if (job.dense_grad != nullptr)
        store(static_cast<__nv_bfloat16*>(job.dense_grad) + row * width + column, dense);
      for (int i = 0; i < kVector; ++i) sums[2].part[v].at[i] += dense.at[i];
    });
  }
  write_partial<kVectors, 3>(sums, width, job.partial);
}

template <int kVectors>
__global__ void embed_grad_kernel(EmbedGradJob job) {
  const int64_t width = job.of.width, stride = static_cast<int64_t>(gridDim.x) * kWarps;
  Row<kVectors> sums[2] = {};
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; row < job.of.rows;
       row += stride) {
    const RowNoise noise(job.of.drop, row);
    Row<kVectors> grad;
    grad.each(width, [&](int v, int64_t column) {
      grad.part[v] = load(static_cast<const __nv_bfloat16*>(job.grad) + row * width + column);
      noise.apply(grad.part[v], column);
    });
    Row<kVectors> made = grad;
    if (job.of.weight != nullptr) {
      const Row<kVectors> x = embedded<kVectors>(job.of, row);
      const float2 stats = reinterpret_cast<const float2*>(job.of.stats)[row];
      made = norm_grad(grad, x, stats, job.of.weight, width, sums[0], sums[1]);
    }
    made.each(width, [&](int v, int64_t column) {
      store(static_cast<__nv_bfloat16*>(job.sum_grad) + row * width + column, made.part[v]);
    });
  }
  if (job.of.weight != nullptr) write_partial<kVectors, 2>(sums, width, job.partial);
}

/// Calls `run` with the number of vectors a lane needs for a row of `width`.
template <typename Run>
void by_width(int64_t width, const Run& run) {
  const int64_t vectors = (width + kWarp * kVector - 1) / (kWarp * kVector);
  if (vectors <= 1) return run(std::integral_constant<int, 1>{});
  if (vectors <= 2) return run(std::integral_constant<int, 2>{});
  if (vectors <= 3) return run(std::integral_constant<int, 3>{});
  if (vectors <= 4) return run(std::integral_constant<int, 4>{});
  run(std::integral_constant<int, 8>{});
}

unsigned blocks_for(int64_t rows) { return static_cast<unsigned>((rows + kWarps - 1) / kWarps); }

}  // namespace

int norm_blocks(int64_t rows) {
  return static_cast<int>(
      std::min<int64_t>(blocks_for(rows), 264));  // two for each multiprocessor of a large GPU
}

void launch(const NormJob& job, void* stream) {
  by_width(job.width, [&](auto vectors) {
    norm_kernel<vectors><<<blocks_for(job.rows), kWarps * kWarp, 0, static_cast<cudaStream_t>(stream)>>>(job);
  });
}

void launch(const EmbedJob& job, void* stream) {
  by_width(job.width, [&](auto vectors) {
    embed_kernel<vectors>
        <<<blocks_for(job.rows), kWarps * kWarp, 0, static_cast<cudaStream_t>(stream)>>>(job);
  });
}

void launch(const NormGradJob& job, void* stream) {
  const int blocks = norm_blocks(job.rows);
  const size_t shared = static_cast<size_t>(job.width) * sizeof(float);
  by_width(job.width, [&](auto vectors) {
    norm_grad_kernel<vectors>
        <<<static_cast<unsigned>(blocks), kWarps * kWarp, shared, static_cast<cudaStream_t>(stream)>>>(job);
  });
  const int64_t stride = 3 * job.width;
  float* const outs[] = {job.weight_grad, job.shift_grad, job.bias_grad};
  add_columns_of_parts(job.partial, blocks, stride, job.width, outs, job.bias_grad != nullptr ? 3 : 2,
                       stream);
}

void launch(const EmbedGradJob& job, void* stream) {
  const int blocks = norm_blocks(job.of.rows);
  const size_t shared = static_cast<size_t>(job.of.width) * sizeof(float);
  by_width(job.of.width, [&](auto vectors) {
    embed_grad_kernel<vectors>
        <<<static_cast<unsigned>(blocks), kWarps * kWarp, shared, static_cast<cudaStream_t>(stream)>>>(job);
  });
  if (job.of.weight == nullptr) return;
  float* const outs[] = {job.weight_grad, job.shift_grad};
  add_columns_of_parts(job.partial, blocks, 2 * job.of.width, job.of.width, outs, 2, stream);
}

}  // namespace syncopate::gpu
