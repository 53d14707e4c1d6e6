#pragma once

#include <cstdint>
#include <vector>

// Row-wise work of a transformer on fp32 arrays, one source compiled for several instruction sets and chosen
// when the program runs. No torch: pointers, sizes and strides (in elements) only. A job describes the whole
// array; each function does the rows first..last-1, so that the caller may split a job over threads. Sums
// over rows ("+=") go to arrays of the caller's, one per split.
namespace syncopate::nn::kernels {

/// Noise of dropout, see nn/layers/noise.h; nothing is dropped where drop_below is 0.
struct NoiseJob {
  uint64_t key = 0;
  uint32_t drop_below = 0;
  float scale = 1;
  const uint64_t* rows = nullptr;  ///< which row of the noise each row is; null: row r is r
};

/// sum = noise(sum + bias) + residual; out = (sum - mean) / deviation * weight + shift.
struct NormJob {
  int64_t width = 0;
  float eps = 0;
  NoiseJob noise;
  const float* bias = nullptr;      ///< [width]
  const float* weight = nullptr;    ///< [width]
  const float* shift = nullptr;     ///< [width]
  const float* residual = nullptr;  ///< [rows, width] with rows residual_stride apart
  int64_t residual_stride = 0;
  float* sum = nullptr;    ///< [rows, width]; in: the dense product
  float* stats = nullptr;  ///< [rows, 2]: mean and 1 / deviation
  float* out = nullptr;    ///< [rows, width]
};

struct NormGradJob {
  int64_t width = 0;
  NoiseJob noise;
  const float* weight = nullptr;
  const float* sum = nullptr;
  const float* stats = nullptr;
  const float* grad_out = nullptr;
  float* grad_sum = nullptr;  ///< [rows, width]: of the residual
  float* grad_dense =
      nullptr;  ///< [rows, width]: of the dense product; the same array as grad_sum without noise
};

/// word[ids] + position + type, normalised, then noise.
struct EmbedJob {
  int64_t width = 0;
  float eps = 0;
  NoiseJob noise;
  const int64_t* ids = nullptr;     ///< [rows], inside the tables
  const int64_t* types = nullptr;   ///< [rows]
  const int64_t* places = nullptr;  ///< [rows]: in the table of positions
  const float* word = nullptr;
  const float* position = nullptr;
  const float* type = nullptr;
  const float* weight = nullptr;
  const float* shift = nullptr;
  float* stats = nullptr;
  float* out = nullptr;             ///< forward
  const float* grad_out = nullptr;  ///< backward
  float* grad_sum = nullptr;        ///< backward
};

/// out = noise(gelu(in + bias)).
struct GeluJob {
  int64_t width = 0;
  bool tanh = false;  ///< the approximation by tanh instead of erf
  NoiseJob noise;
  const float* in = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
  float* grad = nullptr;  ///< backward only; in: of `out`, out: of `in`
};

/// Attention of B * H heads; row r is head r % heads of example r / heads. Where examples differ in length,
/// their positions lie one after the other without padding, and `starts` and `areas` say where.
struct AttentionJob {
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t queries = 0;              ///< positions asked for; of different lengths: 1, or `length` for all
  int64_t length = 0;               ///< positions attended to; of different lengths: of the longest
  const int64_t* starts = nullptr;  ///< [B + 1]: of positions; null: all have `length`
  const int64_t* areas = nullptr;   ///< [B + 1]: of queries times length, summed, for `probs`
  float scale = 1;
  bool half = false;    ///< products in bf16
  bool causal = false;  ///< query l sees positions 0..l alone; needs queries == length
  NoiseJob noise;       ///< its rows: example * queries + query; each head has a noise of its own
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  int64_t q_stride = 0;  ///< from a position to the next
  int64_t kv_stride = 0;
  const float* mask = nullptr;  ///< [B, length], added to the scores; may be null
  float* probs = nullptr;       ///< [B, H, queries, length] before noise; forward: may be null
  float* context = nullptr;     ///< [B, queries, H * head_width]
  const float* grad_context = nullptr;
  float* grad_q = nullptr;  ///< strides as q, k, v
  float* grad_k = nullptr;
  float* grad_v = nullptr;
};

/// out = noise(in) + residual.
struct DropJob {
  int64_t width = 0;
  NoiseJob noise;
  const float* in = nullptr;
  const float* residual = nullptr;  ///< may be null
  float* out = nullptr;             ///< may be one of the two
};

/// One side of a product in bf16: the rows of a or the columns of b, `depth` elements each. One of the steps
/// is 1.
struct HalfSide {
  const float* data = nullptr;
  int64_t count = 0;
  int64_t depth = 0;
  int64_t step = 0;        ///< from a row of a (or a column of b) to the next
  int64_t depth_step = 0;  ///< from an element in it to the next
};

/// c [a.count, b.count] = start + a b, rounded to bf16 before it is multiplied and summed in fp32.
struct HalfProductJob {
  HalfSide a, b;
  const uint16_t* packed_b = nullptr;  ///< all of b, by half_pack
  const float* start = nullptr;        ///< null: zeros; c itself, to add to it; a bias, with start_row 0
  int64_t start_row = 0;
  float* c = nullptr;
  int64_t c_row = 0;
};

/// Rows and columns of such a product are made in blocks of as many.
inline constexpr int64_t kHalfBlock = 32;

struct Kernels {
  const char* name;
  void (*norm)(const NormJob&, int64_t first, int64_t last);
  void (*norm_grad)(const NormGradJob&, int64_t first, int64_t last, float* weight_grad, float* shift_grad,
                    float* bias_grad);  ///< += [width] each; bias_grad may be null
  void (*embed)(const EmbedJob&, int64_t first, int64_t last);
  void (*embed_grad)(const EmbedJob&, int64_t first, int64_t last, float* weight_grad, float* shift_grad);
  void (*gelu)(const GeluJob&, int64_t first, int64_t last);
  void (*gelu_grad)(const GeluJob&, int64_t first, int64_t last,
                    float* bias_grad);                ///< also writes `out` again
  int64_t (*attention_scratch)(const AttentionJob&);  ///< floats that each of the next two needs
  void (*attention)(const AttentionJob&, int64_t first, int64_t last, float* scratch);
  void (*attention_grad)(const AttentionJob&, int64_t first, int64_t last, float* scratch);
  void (*add_rows)(const float* matrix, int64_t width, int64_t first, int64_t last, float* sums);  ///< +=
  void (*drop)(const DropJob&, int64_t first, int64_t last);
  bool half;  ///< whether there are instructions for products in bf16; without them the next three are slow
  int64_t (*half_size)(int64_t count, int64_t depth);  ///< of a packed side, in elements; aligned to 64 bytes
  void (*half_pack)(const HalfSide& b, int64_t first, int64_t last, uint16_t* packed);  ///< of all columns
  void (*half_multiply)(const HalfProductJob&, int64_t first_row, int64_t last_row, int64_t first_column,
                        int64_t last_column, uint16_t* scratch);  ///< half_size of these rows
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
namespace avx512_bf16 {
extern const Kernels table;
}
namespace amx {
extern const Kernels table;
}

/// The fastest set that this CPU runs, unless use_kernels chose another.
const Kernels& kernels();
/// For tests and comparisons; not while anything computes.
void use_kernels(const Kernels& set);
/// Every set that this CPU runs, the plainest first: for tests.
std::vector<const Kernels*> supported_kernels();

}  // namespace syncopate::nn::kernels
