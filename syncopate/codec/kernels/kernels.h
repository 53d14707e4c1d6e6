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

struct Kernels {
  const char* name;
  Format fp32, fp16, bf16, int8, int4, sign;
  bool (*finite)(const float* data, int64_t count);
  void (*add)(const float* from, float* into, int64_t count);
  /// Writes the positions whose magnitude, as a number of bits, is `least` or more, in rising order; returns
  /// how many. `into` has room for all of them and 16 more.
  int64_t (*positions_from)(const float* data, int64_t count, uint32_t least, uint32_t* into);
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
