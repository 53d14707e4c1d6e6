#pragma once

#include <cstdint>

// What the kernels are given, without torch and without CUDA's headers: .cu files see no torch, and .cpp
// files no kernels. Matrices are bf16 in rows, sums are made in fp32. `stream` is a cudaStream_t.
namespace syncopate::gpu {

/// Which elements are dropped: a hash of (key of the step, site, example, place in it, column), the same as
/// on the CPU. Row r of a matrix is position `positions[r]`, or r where there are none, of [B, each]. Key and
/// examples are read when the kernel runs, so that a captured graph follows them.
struct DropJob {
  const uint64_t* key = nullptr;       ///< of the step
  const uint64_t* examples = nullptr;  ///< [B]: the hash of an example's number
  const int64_t* positions = nullptr;  ///< may be null
  uint64_t site = 0;
  int64_t each = 1;
  uint32_t below = 0;  ///< an element is dropped where its hash is below; 0: none is
  float scale = 1;     ///< of the elements kept
};

/// out = norm(residual + drop(dense + bias)), or without what is null: dense and bias, the norm's weight and
/// shift (then there is nothing but the sum).
struct NormJob {
  int64_t rows = 0, width = 0;
  const void* dense = nullptr;
  const float* bias = nullptr;
  const void* residual = nullptr;
  int64_t residual_stride = 0;  ///< elements from row to row
  const float* weight = nullptr;
  const float* shift = nullptr;
  float eps = 0;
  DropJob drop{};
  void* sum = nullptr;     ///< what was normed
  float* stats = nullptr;  ///< [rows, 2]: mean, 1 / deviation
  void* out = nullptr;
};

/// The gradients of that. `partial` [blocks, 3, width] is room for sums.
struct NormGradJob {
  int64_t rows = 0, width = 0;
  const void* grad = nullptr;
  const void* sum = nullptr;
  const void* more = nullptr;  ///< what else is the gradient of the sum; may be null
  const float* stats = nullptr;
  const float* weight = nullptr;
  DropJob drop{};
  void* sum_grad = nullptr;
  void* dense_grad = nullptr;  ///< may be null: nothing was dropped, it would be sum_grad
  float* partial = nullptr;
  float *weight_grad = nullptr, *shift_grad = nullptr,
        *bias_grad = nullptr;  ///< added to; bias_grad may be null
};

/// out = drop(gelu(in)).
struct GeluJob {
  int64_t rows = 0, width = 0;
  bool tanh = false;
  const void* in = nullptr;
  DropJob drop{};
  void* out = nullptr;
};

/// Of that: `grad` comes in as that of `out` and leaves as that of `in`, whose columns are added to
/// bias_grad.
struct GeluGradJob {
  int64_t rows = 0, width = 0;
  bool tanh = false;
  const void* in = nullptr;
  DropJob drop{};
  void* grad = nullptr;
  float* partial = nullptr;  ///< [row_chunks(rows), width]
  float* bias_grad = nullptr;
};

/// out [rows, parts * width] = the parts beside each other, dropped; the sums of their columns are added to
/// `sums`.
struct JoinJob {
  static constexpr int kMost = 3;
  int64_t rows = 0, width = 0;
  int parts = 0;
  const void* from[kMost] = {};
  DropJob drop{};
  void* out = nullptr;       ///< may be null: sums alone
  float* partial = nullptr;  ///< [row_chunks(rows), parts * width]
  float* sums[kMost] = {};   ///< none: nobody asks for them
};

/// out = drop(norm(word + position + type)), by numbers of words; row r has position r % length. Types, and
/// the norm's weight and shift, may be null: then there are none.
struct EmbedJob {
  int64_t rows = 0, width = 0, length = 1;
  const int64_t* ids = nullptr;
  const int64_t* types = nullptr;
  const void *word = nullptr, *position = nullptr, *type = nullptr;
  const float* weight = nullptr;
  const float* shift = nullptr;
  float eps = 0;
  DropJob drop{};
  float* stats = nullptr;
  void* out = nullptr;
};

/// The gradient of the sum that was normed, and of the norm's parameters.
struct EmbedGradJob {
  EmbedJob of{};
  const void* grad = nullptr;
  void* sum_grad = nullptr;
  float* partial = nullptr;
  float *weight_grad = nullptr, *shift_grad = nullptr;
};

/// table[ids[i]] += rows[order[i]] for sorted ids, in that order; the row of `pad` is left out.
struct ScatterJob {
  int64_t count = 0, width = 0, pad = -1;
  const int64_t* ids = nullptr;  ///< sorted
  const int64_t* order = nullptr;
  const void* rows = nullptr;
  float* table = nullptr;
};

/// Cross entropy of rows of logits, each added to `losses[row]`'s place; the logits become their gradients.
struct EntropyJob {
  int64_t rows = 0, classes = 0, stride = 0;  ///< elements from row to row, a multiple of 8
  void* logits = nullptr;
  const int64_t* labels = nullptr;  ///< a row whose label is `nothing` has no loss and no gradient
  int64_t nothing = -100;
  float* losses = nullptr;
};

/// A pass of batch norm over [rows, channels]. `partial` [norm_passes(rows), 2, channels] is room for sums.
struct BatchNormJob {
  int64_t rows = 0, channels = 0;
  const void* x = nullptr;
  const float *weight = nullptr, *bias = nullptr;
  const void* added = nullptr;  ///< may be null
  bool relu = false;
  uint8_t* let_through = nullptr;  ///< [rows, channels / 8]: a bit where relu did; may be null
  float *running_mean = nullptr, *running_var = nullptr;  ///< may be null
  float momentum = 0, eps = 0;
  float* partial = nullptr;
  float* stats = nullptr;  ///< [channels, 2]: mean, 1 / deviation
  void* out = nullptr;
};
struct BatchNormGradJob {
  int64_t rows = 0, channels = 0;
  const void* grad = nullptr;
  const void* other_grad = nullptr;  ///< added to it; may be null
  const void* x = nullptr;
  bool relu = false;
  const uint8_t* let_through = nullptr;  ///< of the forward pass, with relu; null: nothing was added
  const float *weight = nullptr, *bias = nullptr;
  const float* stats = nullptr;
  float* partial = nullptr;
  float* means = nullptr;      ///< [channels, 2]: room for the means that the second pass needs
  void* added_grad = nullptr;  ///< may be null
  void* x_grad = nullptr;
  float *weight_grad = nullptr, *bias_grad = nullptr;  ///< added to
};
int norm_passes(int64_t rows, int64_t channels);

/// grad [outputs, channels, pixels] += laid [outputs, pixels, laid_channels], of which the first `channels`.
struct LaidGradJob {
  int64_t outputs = 0, channels = 0, laid_channels = 0;
  int pixels = 1;
  const void* laid = nullptr;  ///< bf16
  float* grad = nullptr;
};
/// out [batch * height * width, kColumns] in bf16: the kSide x kSide pixels around each pixel, of 1 to 3
/// channels.
struct PatchJob {
  static constexpr int kSide = 3, kColumns = 32;
  unsigned batch = 0, channels = 0, height = 0, width = 0;
  bool half = false;  ///< images in bf16 instead of fp32
  const void* images = nullptr;
  int64_t strides[4] = {};  ///< of batch, channels, height and width
  void* out = nullptr;
};
constexpr bool takes_channels(int64_t channels) {  // whole vectors that divide a block
  return channels >= 8 && channels <= 2048 && (channels & (channels - 1)) == 0;
}

/// Elements begin..end-1 of all arrays become their sum; `begin` is a multiple of 4.
struct SumJob {
  static constexpr int kMost = 8;
  int count = 0;
  int64_t begin = 0, end = 0;
  float* arrays[kMost] = {};
};

/// A piece of the flat arrays: elements of one entry, which decays or does not.
struct Piece {
  int64_t begin = 0;
  int64_t half = 0;   ///< where its entry's copy in half precision begins
  int32_t first = 0;  ///< element of its entry
  int32_t count = 0;
  int32_t decays = 0;
  int32_t channels = 1, pixels = 1;  ///< of a convolution's weight: its copy has channels last
};
constexpr int32_t kPiece = 8192;

struct AdamWJob {
  const Piece* pieces = nullptr;
  int64_t count = 0;
  float* values = nullptr;
  const float* grads = nullptr;
  float *first = nullptr, *second = nullptr;
  void* half = nullptr;           ///< bf16; may be null
  const float* factor = nullptr;  ///< what gradients are multiplied by; no number: nothing is updated
  float keep1 = 0, keep2 = 0, step_size = 0, root_correction = 0, eps = 0, shrink = 1;
};

/// norm[0] = scale * ‖grads‖ and factor[0] = scale, less where the norm is above `limit` (0: no limit).
struct ClipJob {
  const float* grads = nullptr;
  int64_t count = 0;
  double* partial = nullptr;  ///< [kClipBlocks]
  double scale = 1, limit = 0;
  double* norm = nullptr;
  float* factor = nullptr;
};
constexpr int kClipBlocks = 1024;

/// Partial sums that a norm's gradient takes room for.
int norm_blocks(int64_t rows);
int64_t row_chunks(int64_t rows);
/// Widths that the kernels take: rows of whole vectors that a warp holds in registers.
constexpr bool takes_width(int64_t width) { return width > 0 && width % 8 == 0 && width <= 2048; }

void launch(const NormJob& job, void* stream);
void launch(const NormGradJob& job, void* stream);
void launch(const GeluJob& job, void* stream);
void launch(const GeluGradJob& job, void* stream);
void launch(const JoinJob& job, void* stream);
void launch(const EmbedJob& job, void* stream);
void launch(const EmbedGradJob& job, void* stream);
void launch(const ScatterJob& job, void* stream);
void launch(const EntropyJob& job, void* stream);
void launch(const BatchNormJob& job, void* stream);
void launch(const SumJob& job, void* stream);
void launch(const BatchNormGradJob& job, void* stream);
void launch(const LaidGradJob& job, void* stream);
void launch(const PatchJob& job, void* stream);
void launch(const AdamWJob& job, void* stream);
void launch(const ClipJob& job, void* stream);
/// half = values in bf16, piece by piece.
void launch_copy(const AdamWJob& job, void* stream);

/// Adds the sums of the columns of partial [count, parts * width] to `out[part]` [width], in the same order
/// on every run; `stride` is the number of columns, those beyond the parts left out.
void add_columns_of_parts(const float* partial, int64_t count, int64_t stride, int64_t width,
                          float* const* out, int parts, void* stream);

}  // namespace syncopate::gpu
