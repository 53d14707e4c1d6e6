// The codecs that pack bucket by bucket: codec/kernels/halves.h and scaled.h, bit for bit. A warp packs a run
// of 512 numbers, whole buckets of every format; lane l holds numbers l, l + 32, l + 64, and so on.
#include "syncopate/gpu/cuda/numbers.cuh"

namespace syncopate::gpu {
namespace {

constexpr int kWarp = 32, kWarps = 8, kThreads = kWarp * kWarps;
constexpr int kEach = 16, kRun = kWarp * kEach;
constexpr int64_t kChunk = int64_t{kRun} * kWarps;  // a block's; where a sum overflows, it keeps its rest
constexpr unsigned kAll = 0xFFFFFFFFu;

struct Numbers {
  float at[kEach];
};

__device__ int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

/// Calls use(k, place) for the numbers of this lane that the run has.
template <typename Use>
__device__ void for_each_of(int count, const Use& use) {
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int place = k * kWarp + lane();
    if (place < count) use(k, place);
  }
}

// Loads come before stores: as far as the compiler knows, arrays may overlap.
__device__ Numbers load(const float* from, int count) {
  Numbers x{};
  for_each_of(count, [&](int k, int place) { x.at[k] = from[place]; });
  return x;
}

__device__ void store(float* into, int count, const Numbers& x) {
  for_each_of(count, [&](int k, int place) { into[place] = x.at[k]; });
}

struct Fp32 {
  static constexpr int kBytes = 4 * kRun;
  __device__ static Numbers pack(const Numbers& x, int count, uint8_t* into) {
    store(reinterpret_cast<float*>(into), count, x);
    return x;
  }
  __device__ static Numbers unpack(const uint8_t* from, int count) {
    return load(reinterpret_cast<const float*>(from), count);
  }
};

/// Formats of 16 bits, each number by itself.
template <typename Half>
struct Halves {
  static constexpr int kBytes = 2 * kRun;
  __device__ static Numbers pack(const Numbers& x, int count, uint8_t* into) {
    Numbers y{};
    for_each_of(count, [&](int k, int place) {
      const uint32_t half = Half::narrow(__float_as_uint(x.at[k]));
      reinterpret_cast<uint16_t*>(into)[place] = static_cast<uint16_t>(half);
      y.at[k] = __uint_as_float(Half::widen(half));
    });
    return y;
  }
  __device__ static Numbers unpack(const uint8_t* from, int count) {
    Numbers y{};
    for_each_of(count, [&](int k, int place) {
      y.at[k] = __uint_as_float(Half::widen(reinterpret_cast<const uint16_t*>(from)[place]));
    });
    return y;
  }
};

struct Fp16 {
  __device__ static uint32_t narrow(uint32_t bits) {
    constexpr uint32_t kLargest = 0x477fe000;  // 65504
    const uint32_t sign = (bits & ~kMagnitude) >> 16;
    uint32_t size = bits & kMagnitude;
    if (size > kLargest && size < kInfinity) size = kLargest;
    if (size >= kInfinity) {
      const uint32_t quiet = size > kInfinity ? ((size >> 13) & 0x3ffu) | 0x200u : 0;
      return sign | 0x7c00u | quiet;
    }
    // Below the smallest normal number the sum with 1/2 has the half's digits as its last ones, rounded.
    if (size < 0x38800000u) {
      return sign | (__float_as_uint(__fadd_rn(__uint_as_float(size), 0.5f)) - 0x3f000000u);
    }
    return sign | ((size - (112u << 23) + 0xfffu + ((size >> 13) & 1u)) >> 13);
  }
  __device__ static uint32_t widen(uint32_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, size = (half & 0x7fffu) << 13;
    if (size >= 0x0f800000u) return sign | size | kInfinity;
    return sign | __float_as_uint(__fmul_rn(__uint_as_float(size), 0x1p112f));
  }
};

struct Bf16 {
  __device__ static uint32_t narrow(uint32_t bits) {
    // Nothing is added to those that would round up to infinity, nor to those that are not finite.
    const uint32_t size = bits & kMagnitude;
    const uint32_t up = size < 0x7f7f8000u ? ((size >> 16) & 1u) + 0x7fffu : 0;
    return (bits + up) >> 16;
  }
  __device__ static uint32_t widen(uint32_t half) { return half << 16; }
};

/// Steps of a bucket whose largest magnitude becomes `levels`; `up` is 1 / scale.
struct Steps {
  float scale, up;
};

__device__ Steps steps_of(uint32_t largest, float levels) {
  if (largest >= kInfinity) return {__uint_as_float(kNoNumber), 0};
  const float most = fminf(__uint_as_float(largest), 0x1.fffff8p127f);
  if (most < 0x1p-110f) return {0, 0};
  return {__fdiv_rn(most, levels), __fdiv_rn(levels, most)};
}

__device__ int rounded(float x, float up) {
  return __float_as_int(__fadd_rn(__fmul_rn(x, up), 0x1.8p23f)) - 0x4b400000;
}

__device__ uint32_t largest_of_warp(uint32_t most) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const uint32_t other = __shfl_xor_sync(kAll, most, offset);
    most = other > most ? other : most;
  }
  return most;
}

struct Int8 {
  static constexpr int kBytes = 4 + kRun;
  __device__ static Numbers pack(const Numbers& x, int count, uint8_t* into) {
    uint32_t most = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) most = max(most, magnitude(x.at[k]));
    const Steps steps = steps_of(largest_of_warp(most), 127);
    if (lane() == 0 && count > 0) *reinterpret_cast<float*>(into) = steps.scale;
    Numbers y{};
    for_each_of(count, [&](int k, int place) {
      const int code = rounded(x.at[k], steps.up);
      into[4 + place] = static_cast<uint8_t>(code);
      y.at[k] = __fmul_rn(static_cast<float>(code), steps.scale);
    });
    return y;
  }
  __device__ static Numbers unpack(const uint8_t* from, int count) {
    Numbers y{};
    const float scale = count > 0 ? *reinterpret_cast<const float*>(from) : 0;
    for_each_of(count, [&](int k, int place) {
      y.at[k] = __fmul_rn(static_cast<float>(static_cast<int8_t>(from[4 + place])), scale);
    });
    return y;
  }
};

/// Byte j holds number j in its low half and number j + bucket / 2 in its high one, each 8 too large: both
/// are this lane's.
struct Int4 {
  static constexpr int kBucket = 128, kBucketBytes = 4 + kBucket / 2, kBuckets = kRun / kBucket;
  static constexpr int kOfBucket = kBucket / kWarp, kHalf = kOfBucket / 2;  // numbers of a lane
  static constexpr int kBytes = kBuckets * kBucketBytes;

  __device__ static Numbers pack(const Numbers& x, int count, uint8_t* into) {
    Numbers y{};
#pragma unroll
    for (int b = 0; b < kBuckets; ++b, into += kBucketBytes) {
      const int first = b * kOfBucket, here = count - b * kBucket;
      uint32_t most = 0;
#pragma unroll
      for (int k = 0; k < kOfBucket; ++k) most = max(most, magnitude(x.at[first + k]));
      const Steps steps = steps_of(largest_of_warp(most), 7);
      if (lane() == 0 && here > 0) *reinterpret_cast<float*>(into) = steps.scale;
#pragma unroll
      for (int k = 0; k < kHalf; ++k) {
        const int low = rounded(x.at[first + k], steps.up), high = rounded(x.at[first + kHalf + k], steps.up);
        const int place = k * kWarp + lane();
        if (place < here) into[4 + place] = static_cast<uint8_t>((low + 8) | ((high + 8) << 4));
        y.at[first + k] = __fmul_rn(static_cast<float>(low), steps.scale);
        y.at[first + kHalf + k] = __fmul_rn(static_cast<float>(high), steps.scale);
      }
    }
    return y;
  }
  __device__ static Numbers unpack(const uint8_t* from, int count) {
    Numbers y{};
#pragma unroll
    for (int b = 0; b < kBuckets; ++b, from += kBucketBytes) {
      const int first = b * kOfBucket, here = count - b * kBucket;
      if (here <= 0) break;
      const float scale = *reinterpret_cast<const float*>(from);
#pragma unroll
      for (int k = 0; k < kHalf; ++k) {
        const int place = k * kWarp + lane(), codes = place < here ? from[4 + place] : 0;
        y.at[first + k] = __fmul_rn(static_cast<float>((codes & 15) - 8), scale);
        y.at[first + kHalf + k] = __fmul_rn(static_cast<float>((codes >> 4) - 8), scale);
      }
    }
    return y;
  }
};

/// A bit for each number, set where it is negative, and the mean of the magnitudes. The host adds them up in
/// 32 partial sums, which are the lanes here.
struct Sign {
  static constexpr int kBytes = 4 + kRun / 8;
  __device__ static int bytes_of(int count) { return (count + 7) / 8; }

  __device__ static Numbers pack(const Numbers& x, int count, uint8_t* into) {
    const float share = __fdiv_rn(1.0f, static_cast<float>(count));
    float scale = 0;
    uint32_t most = 0, mine = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t size = magnitude(x.at[k]);
      most = max(most, size);
      scale = __fadd_rn(scale, __fmul_rn(__uint_as_float(size), share));
      const uint32_t signs = __ballot_sync(kAll, __float_as_uint(x.at[k]) >> 31);
      if (lane() == k) mine = signs;
    }
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      scale = __fadd_rn(scale, __shfl_down_sync(kAll, scale, offset));
    }
    scale = __shfl_sync(kAll, scale, 0);
    if (scale > 0x1.fffffep127f) scale = 0x1.fffffep127f;
    if (largest_of_warp(most) >= kInfinity) scale = __uint_as_float(kNoNumber);
    if (lane() == 0 && count > 0) *reinterpret_cast<float*>(into) = scale;
    store_signs(into + 4, mine, bytes_of(count));
    Numbers y;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      y.at[k] = __uint_as_float(__float_as_uint(scale) | (__float_as_uint(x.at[k]) & ~kMagnitude));
    }
    return y;
  }

  __device__ static Numbers unpack(const uint8_t* from, int count) {
    const uint32_t scale = count > 0 ? *reinterpret_cast<const uint32_t*>(from) : 0;
    const uint32_t mine = load_signs(from + 4, bytes_of(count));
    Numbers y;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t signs = __shfl_sync(kAll, mine, k);
      y.at[k] = __uint_as_float(scale | ((signs >> lane() & 1u) << 31));
    }
    return y;
  }

 private:
  __device__ static void store_signs(uint8_t* into, uint32_t signs, int bytes) {
    if (4 * lane() + 4 <= bytes) {
      reinterpret_cast<uint32_t*>(into)[lane()] = signs;
      return;
    }
    for (int b = 4 * lane(); b < bytes; ++b) into[b] = static_cast<uint8_t>(signs >> (b % 4 * 8));
  }
  __device__ static uint32_t load_signs(const uint8_t* from, int bytes) {
    if (4 * lane() + 4 <= bytes) return reinterpret_cast<const uint32_t*>(from)[lane()];
    uint32_t signs = 0;
    for (int b = 4 * lane(); b < bytes; ++b) signs |= static_cast<uint32_t>(from[b]) << (b % 4 * 8);
    return signs;
  }
};

/// Which run is this warp's, and how many numbers of it there are.
struct Run {
  __device__ explicit Run(int64_t total)
      : number(static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp),
        begin(number * kRun),
        count(static_cast<int>(min(max(total - begin, int64_t{0}), int64_t{kRun}))) {}
  int64_t number, begin;
  int count;
};

template <typename F, bool kRest>
__global__ void __launch_bounds__(kThreads) pack_kernel(PackJob job) {
  const Run run(job.count);
  float* const from = job.from + run.begin;
  float* const rest = kRest ? job.rest + run.begin : nullptr;
  bool feeds = false;
  if constexpr (kRest) feeds = *job.strange == 0;
  Numbers x = load(from, run.count);
  bool fine = true;
  if (feeds) {
    const Numbers kept = load(rest, run.count);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      x.at[k] = __fadd_rn(x.at[k], kept.at[k]);
      fine = fine && is_finite(x.at[k]);
    }
    store(from, run.count, x);
  }
  Numbers y = F::pack(x, run.count, job.packed + run.number * F::kBytes);
  if (!feeds || !__syncthreads_and(fine)) return;
#pragma unroll
  for (int k = 0; k < kEach; ++k) y.at[k] = __fsub_rn(x.at[k], y.at[k]);
  store(rest, run.count, y);
}

template <typename F, bool kAdds>
__global__ void __launch_bounds__(kThreads) unpack_kernel(UnpackJob job) {
  const Run run(job.count);
  float* const into = job.into + run.begin;
  Numbers y = F::unpack(job.packed + run.number * F::kBytes, run.count);
  if (kAdds) {
    const Numbers x = load(into, run.count);
#pragma unroll
    for (int k = 0; k < kEach; ++k) y.at[k] = __fadd_rn(x.at[k], y.at[k]);
  }
  store(into, run.count, y);
}

__global__ void __launch_bounds__(kThreads) finite_kernel(FiniteJob job) {
  const Run run(job.count);
  const Numbers x = load(job.from + run.begin, run.count);
  bool fine = true;
#pragma unroll
  for (int k = 0; k < kEach; ++k) fine = fine && is_finite(x.at[k]);
  if (!fine) job.strange[0] = 1;
}

__global__ void __launch_bounds__(kThreads) add_rest_kernel(AddRestJob job) {
  if (job.strange[0] != 0) return;
  const Run run(job.count);
  Numbers x = load(job.from + run.begin, run.count);
  const Numbers kept = load(job.rest + run.begin, run.count);
  bool fine = true;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    x.at[k] = __fadd_rn(x.at[k], kept.at[k]);
    fine = fine && is_finite(x.at[k]);
  }
  store(job.from + run.begin, run.count, x);
  if (!fine) job.strange[1] = 1;
}

/// Calls use(F) for the format's type.
template <typename Use>
void with_format(Format format, const Use& use) {
  switch (format) {
    case Format::kFp32:
      return use(Fp32{});
    case Format::kFp16:
      return use(Halves<Fp16>{});
    case Format::kBf16:
      return use(Halves<Bf16>{});
    case Format::kInt8:
      return use(Int8{});
    case Format::kInt4:
      return use(Int4{});
    case Format::kSign:
      return use(Sign{});
    case Format::kTopK:
    case Format::kRandomK:
      return;  // have jobs of their own
  }
}

}  // namespace

void launch(const FiniteJob& job, void* stream) {
  finite_kernel<<<blocks_for(job.count, kChunk), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

void launch(const AddRestJob& job, void* stream) {
  add_rest_kernel<<<blocks_for(job.count, kChunk), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
}

void launch(const PackJob& job, void* stream) {
  const unsigned blocks = blocks_for(job.count, kChunk);
  const auto on = static_cast<cudaStream_t>(stream);
  with_format(job.format, [&](auto format) {
    using F = decltype(format);
    if (job.rest != nullptr) {
      pack_kernel<F, true><<<blocks, kThreads, 0, on>>>(job);
    } else {
      pack_kernel<F, false><<<blocks, kThreads, 0, on>>>(job);
    }
  });
}

void launch(const UnpackJob& job, void* stream) {
  const unsigned blocks = blocks_for(job.count, kChunk);
  const auto on = static_cast<cudaStream_t>(stream);
  with_format(job.format, [&](auto format) {
    using F = decltype(format);
    if (job.adds) {
      unpack_kernel<F, true><<<blocks, kThreads, 0, on>>>(job);
    } else {
      unpack_kernel<F, false><<<blocks, kThreads, 0, on>>>(job);
    }
  });
}

}  // namespace syncopate::gpu
