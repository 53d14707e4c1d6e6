#pragma once

#include <cstdint>
#include <vector>

// Loops over fp32 arrays, one source compiled for several instruction sets and chosen when the program runs.
// No torch. Every set gives the same bits: sums have one order, and nothing is contracted.
namespace syncopate::codec::kernels {

/// One way to pack numbers bucket by bucket, a bucket's scale (where it has one) before its codes. Packed
/// whole buckets can be joined end to end.
struct Format {
  int64_t bucket;                        ///< elements
  int64_t bucket_bytes;                  ///< of a whole one
  int64_t (*tail_bytes)(int64_t count);  ///< of the last bucket, with fewer elements
  void (*encode)(const float* from, uint8_t* into, int64_t count);
  void (*decode)(const uint8_t* from, float* into, int64_t count);
  void (*decode_add)(const uint8_t* from, float* into, int64_t count);
  /// rest = whole - decoded from.
  void (*rest)(const uint8_t* from, const float* whole, float* rest, int64_t count);
};

/// What kernels know of each channel of a matrix. Arrays have kLonger more elements than channels, which
/// begin again: any sixteen numbers in a row find theirs.
struct Channels {
  static constexpr int64_t kLonger = 16;
  int64_t count;
  const float *up, *bias;      ///< code = whole part of value * up + bias (and of a draw from [0, 1))
  const float *step, *center;  ///< value = (code - center) * step
};

/// Sums over magnitudes, for each channel.
struct Moments {
  uint32_t* largest;  ///< as a number of bits: those that are not finite are above all others
  float *sums, *squares;
};

/// Of the magnitudes above a limit.
struct Beyond {
  float *counts, *sums, *squares;
};

/// Sums of squares.
struct SquaredError {
  double error = 0;   ///< of what is received against what was meant
  double meant = 0;   ///< of what was meant
  double change = 0;  ///< of what was meant against the memory, where there is one
};

/// Activations in a few bits. A matrix is rows of `channels` numbers without gaps, `count` its numbers. Where
/// there is a `memory`, what is coded is the change against it; it may be null. Codes are packed in groups of
/// kGroup numbers, sixteen side by side; the last group is shorter.
struct ActivationKernels {
  static constexpr int64_t kGroup = 128;
  static constexpr int kMostBits = 8;

  void (*largest)(const float* values, const float* memory, int64_t rows, int64_t channels, uint32_t* into);
  void (*moments)(const float* values, const float* memory, int64_t rows, int64_t channels, Moments into);
  /// Where to look beyond: what `steps` of so many bits wants to know.
  void (*limits)(int bits, int64_t rows, int64_t channels, Moments of, float* into);
  void (*beyond)(const float* values, const float* memory, int64_t rows, int64_t channels,
                 const float* limits, Beyond into);
  /// Each channel's step as it travels. Sums and squares: of 4 bits and fewer, and no draw; `beyond`: of 2
  /// to 4.
  void (*steps)(int bits, bool drawn, int64_t rows, int64_t channels, Moments of, const float* limits,
                Beyond beyond, uint16_t* into);
  /// memory + decoded goes into `update` where that is not null; it may be `memory`. `draw`: null, or the key
  /// of what is added before the whole part is taken.
  using Encode = SquaredError (*)(const float* values, const float* memory, int64_t count,
                                  const Channels& channels, const uint64_t* draw, uint8_t* into,
                                  float* update);
  /// The same from the other side: memory + decoded goes into `into`, and into `update`.
  using Decode = void (*)(const uint8_t* from, const float* memory, int64_t count, const Channels& channels,
                          float* into, float* update);
  Encode encode[kMostBits];  ///< by bits - 1
  Decode decode[kMostBits];
  /// Of `received` against `meant`.
  SquaredError (*compare)(const float* meant, const float* received, int64_t count);
};

struct Kernels {
  const char* name;
  Format fp32, fp16, bf16, int8, int4, sign;
  bool (*finite)(const float* data, int64_t count);
  void (*add)(const float* from, float* into, int64_t count);
  /// Writes the positions whose magnitude, as a number of bits, is `least` or more, in rising order; returns
  /// how many. `into` has room for all of them and 16 more.
  int64_t (*positions_from)(const float* data, int64_t count, uint32_t least, uint32_t* into);
  ActivationKernels activations;
};

// One table for each instruction set; cmake/kernels.cmake says which a build holds.
namespace baseline {
extern const Kernels table;
}
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}

/// The best set this CPU can run.
const Kernels& kernels();
/// Every set that this build holds and this CPU can run, the plainest first.
std::vector<const Kernels*> supported_kernels();
/// For tests and benchmarks.
void use_kernels(const Kernels& set);

}  // namespace syncopate::codec::kernels
