#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// What a transformer does between its matrix products, in one kernel each: bf16 in memory, fp32 in registers,
// parameters fp32. Gradients of parameters are added to the tensors given for them. Names as in
// nn/layers/layers.h.
namespace syncopate::gpu {

/// Whether the kernels take rows of this width, and images of so many channels.
bool takes(int64_t width);
bool takes_images(int64_t channels);

/// Dropout by nn's hash (nn/layers/noise.h): key and examples are in the device's memory, so that a recorded
/// graph drops other elements in every step.
struct Drop {
  at::Tensor key;        ///< int64 [1], of the step
  at::Tensor examples;   ///< int64 [B]: the hash of each example's number
  at::Tensor positions;  ///< int64 [rows], of [B, each]; undefined: row r is position r
  int64_t site = 0;      ///< the place in the model
  int64_t each = 1;      ///< positions of an example
  uint32_t below = 0;    ///< an element is dropped where its hash is below; 0: none is
  float scale = 1;       ///< of the elements kept

  bool active() const { return below > 0; }
};

struct Normed {
  at::Tensor out_ND, sum_ND, stats_N2;
};
/// norm(residual + drop(dense + bias)). `residual_ND` may skip rows in memory.
Normed norm_of_sum(const at::Tensor& dense_ND, const at::Tensor& bias_D, const at::Tensor& residual_ND,
                   const at::Tensor& weight_D, const at::Tensor& shift_D, double eps, const Drop& drop);

struct NormGrads {
  at::Tensor sum_ND;    ///< also of the residual
  at::Tensor dense_ND;  ///< the same tensor where nothing is dropped
};
/// `more_ND` is what else is the gradient of the sum, where that is used otherwise, too; it may be undefined,
/// as `bias_grad_D` may be.
NormGrads norm_of_sum_grads(const at::Tensor& grad_ND, const Normed& normed, const at::Tensor& weight_D,
                            const Drop& drop, const at::Tensor& weight_grad_D, const at::Tensor& shift_grad_D,
                            const at::Tensor& bias_grad_D, const at::Tensor& more_ND = {});

/// norm(x): `sum_ND` is x itself.
Normed norm(const at::Tensor& x_ND, const at::Tensor& weight_D, const at::Tensor& shift_D, double eps);
/// residual + drop(dense + bias).
at::Tensor add_dropped(const at::Tensor& residual_ND, const at::Tensor& dense_ND, const at::Tensor& bias_D,
                       const Drop& drop);
/// The gradient of `dense_ND` in that (the same tensor where nothing is dropped); its columns are added to
/// `bias_grad_D`.
at::Tensor add_dropped_grad(const at::Tensor& grad_ND, const Drop& drop, const at::Tensor& bias_grad_D);

/// drop(x), of rows of whole vectors.
at::Tensor drop(const at::Tensor& x_ND, const Drop& drop);
/// drop(gelu(up)).
at::Tensor gelu(const at::Tensor& up_NF, bool tanh, const Drop& drop);
/// `grad_NF`, of the result, becomes that of `up_NF`; its columns are added to `bias_grad_F`.
void gelu_grad(const at::Tensor& grad_NF, const at::Tensor& up_NF, bool tanh, const Drop& drop,
               const at::Tensor& bias_grad_F);

/// The parts [N, D] beside each other; their columns' sums are added to `sums` [D] each.
at::Tensor join_and_sum(const std::vector<at::Tensor>& parts_ND, const std::vector<at::Tensor>& sums_D);

struct Tables {
  at::Tensor word_VD, position_PD, type_TD;  ///< bf16, or fp32 where gradients are meant
};
struct Embedding {
  at::Tensor ids_BL{}, types_BL{};  ///< int64; undefined types: there are none
  Tables tables{};
  at::Tensor weight_D{}, shift_D{};  ///< undefined: nothing is normed
  int64_t pad_token = -1;            ///< its row gets no gradient
  double eps = 0;
  Drop drop{};
};
struct Embedded {
  at::Tensor out_BLD, stats_N2;
};
/// drop(norm(word + position + type)).
Embedded embed(const Embedding& embedding);
void embed_grads(const at::Tensor& grad_BLD, const Embedding& embedding, const at::Tensor& stats_N2,
                 const Tables& table_grads, const at::Tensor& weight_grad_D, const at::Tensor& shift_grad_D);

/// The cross entropy of every row [N] with its label; rows labelled `nothing` have none. `logits_NV` is room
/// for rows of `classes` logits, whose number is rounded up to a multiple of 8, and holds their gradients
/// after that.
at::Tensor cross_entropy(const at::Tensor& logits_NV, int64_t classes, const at::Tensor& labels_N,
                         int64_t nothing);

/// out += a^T b, products of bf16 summed in fp32 into `out_MN`: a weight's gradient.
void add_product(const at::Tensor& out_MN, const at::Tensor& a_NM, const at::Tensor& b_NN);
/// The same, added to what is there or in its place.
void set_product(const at::Tensor& out_MN, const at::Tensor& a_NM, const at::Tensor& b_NN, bool add);

}  // namespace syncopate::gpu
