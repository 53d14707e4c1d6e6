#pragma once

#include <cstdint>

#include "syncopate/gpu/packing.h"

// What the kernels behind codec.h and orthonormal.h are given; see jobs.h. Jobs of no numbers are not
// launched. `strange` is two flags in the GPU's memory, which begin as 0: a number was not finite, and, with
// a rest, a sum with what was kept is not.
namespace syncopate::gpu {

/// Sets strange[0] if a number is not finite.
struct FiniteJob {
  const float* from = nullptr;
  int64_t count = 0;
  int32_t* strange = nullptr;
};

/// from += rest unless strange[0]; sets strange[1] if a sum is not finite.
struct AddRestJob {
  float* from = nullptr;
  const float* rest = nullptr;
  int64_t count = 0;
  int32_t* strange = nullptr;
};

/// The formats that pack bucket by bucket. With a rest: from += rest and rest = from - what was packed,
/// unless strange[0].
struct PackJob {
  Format format = Format::kFp32;
  float* from = nullptr;
  float* rest = nullptr;  ///< may be null
  const int32_t* strange = nullptr;
  uint8_t* packed = nullptr;
  int64_t count = 0;
};

/// Back again: into what is there, or added to it.
struct UnpackJob {
  Format format = Format::kFp32;
  const uint8_t* packed = nullptr;
  float* into = nullptr;
  int64_t count = 0;
  bool adds = false;
};

/// Of random-k. Packs NaN alone if either flag is set, else leaves in `rest`, if there is one, what does not
/// travel.
struct PickJob {
  const float* from = nullptr;
  float* rest = nullptr;  ///< may be null
  const int32_t* strange = nullptr;
  uint8_t* packed = nullptr;
  int64_t count = 0, kept = 0;
  uint64_t key = 0;
};
/// Adds what was packed to what is there.
struct UnpickJob {
  const uint8_t* packed = nullptr;
  float* into = nullptr;
  int64_t count = 0, kept = 0;
  uint64_t key = 0;
};

/// Of top-k. Leaves in `rest`, if there is one and neither flag is set, what does not travel.
struct TopKJob {
  const float* from = nullptr;
  float* rest = nullptr;  ///< may be null
  const int32_t* strange = nullptr;
  uint8_t* packed = nullptr;
  int64_t count = 0, kept = 0;
  uint32_t* room = nullptr;  ///< [top_k_room(count)]
};
/// Sets `strange` if the message names elements that are not there, and leaves those out.
struct UntopJob {
  const uint8_t* packed = nullptr;
  float* into = nullptr;
  int64_t count = 0, kept = 0;
  bool adds = false;  ///< else it is set, where something was packed
  uint32_t* room = nullptr;
  int32_t* strange = nullptr;
};
int64_t top_k_room(int64_t count);  ///< words

/// Rows of matrices, each a block's.
struct OrthonormalJob {
  static constexpr int kMost = 64;
  struct Matrix {
    float* rows = nullptr;
    double* basis = nullptr;  ///< room for as many numbers
    int64_t many = 0, count = 0;
    uint64_t key = 0;
  };
  int matrices = 0;
  bool replaces = false;  ///< a row that the ones before it span, by a random one
  Matrix each[kMost];
};

void launch(const FiniteJob& job, void* stream);
void launch(const AddRestJob& job, void* stream);
void launch(const PackJob& job, void* stream);
void launch(const UnpackJob& job, void* stream);
void launch(const PickJob& job, void* stream);
void launch(const UnpickJob& job, void* stream);
void launch(const TopKJob& job, void* stream);
void launch(const UntopJob& job, void* stream);
void launch(const OrthonormalJob& job, void* stream);

}  // namespace syncopate::gpu
