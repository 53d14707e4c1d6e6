#include "syncopate/gpu/layers.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "syncopate/base/error.h"
#include "syncopate/gpu/cuda/jobs.h"

namespace syncopate::gpu {
namespace {

template <typename Job>
void start(const Job& job) {
  launch(job, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

DropJob drop_job(const Drop& drop) {
  if (!drop.active()) return {};
  const auto hashes = [](const at::Tensor& numbers) {
    return reinterpret_cast<const uint64_t*>(numbers.data_ptr<int64_t>());
  };
  return {.key = hashes(drop.key),
          .examples = hashes(drop.examples),
          .positions = drop.positions.defined() ? drop.positions.data_ptr<int64_t>() : nullptr,
          .site = static_cast<uint64_t>(drop.site),
          .each = drop.each,
          .below = drop.below,
          .scale = drop.scale};
}

at::Tensor sums(const at::Tensor& like, int64_t rows, int64_t width) {
  return at::empty({rows, width}, like.options().dtype(at::kFloat));
}

float* floats(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }

/// residual + drop(dense + bias), to be normed or not.
NormJob sum_job(const at::Tensor& dense_ND, const at::Tensor& bias_D, const at::Tensor& residual_ND,
                const Drop& drop, const at::Tensor& sum_ND) {
  check(dense_ND.is_contiguous() && residual_ND.stride(1) == 1, "rows lie whole in memory");
  return {.rows = dense_ND.size(0),
          .width = dense_ND.size(1),
          .dense = dense_ND.data_ptr(),
          .bias = floats(bias_D),
          .residual = residual_ND.data_ptr(),
          .residual_stride = residual_ND.stride(0),
          .drop = drop_job(drop),
          .sum = sum_ND.data_ptr()};
}

}  // namespace

bool takes(int64_t width) { return takes_width(width); }
bool takes_images(int64_t channels) { return takes_channels(channels); }

Normed norm_of_sum(const at::Tensor& dense_ND, const at::Tensor& bias_D, const at::Tensor& residual_ND,
                   const at::Tensor& weight_D, const at::Tensor& shift_D, double eps, const Drop& drop) {
  const Normed made{at::empty_like(dense_ND), at::empty_like(dense_ND), sums(dense_ND, dense_ND.size(0), 2)};
  NormJob job = sum_job(dense_ND, bias_D, residual_ND, drop, made.sum_ND);
  job.weight = floats(weight_D);
  job.shift = floats(shift_D);
  job.eps = static_cast<float>(eps);
  job.stats = floats(made.stats_N2);
  job.out = made.out_ND.data_ptr();
  start(job);
  return made;
}

NormGrads norm_of_sum_grads(const at::Tensor& grad_ND, const Normed& normed, const at::Tensor& weight_D,
                            const Drop& drop, const at::Tensor& weight_grad_D, const at::Tensor& shift_grad_D,
                            const at::Tensor& bias_grad_D, const at::Tensor& more_ND) {
  const at::Tensor sum_ND = at::empty_like(grad_ND);
  const at::Tensor dense_ND = drop.active() ? at::empty_like(grad_ND) : sum_ND;
  const int64_t N = grad_ND.size(0), D = grad_ND.size(1);
  const at::Tensor partial = sums(grad_ND, 3 * norm_blocks(N), D);
  start(NormGradJob{.rows = N,
                    .width = D,
                    .grad = grad_ND.data_ptr(),
                    .sum = normed.sum_ND.data_ptr(),
                    .more = more_ND.defined() ? more_ND.data_ptr() : nullptr,
                    .stats = floats(normed.stats_N2),
                    .weight = floats(weight_D),
                    .drop = drop_job(drop),
                    .sum_grad = sum_ND.data_ptr(),
                    .dense_grad = drop.active() ? dense_ND.data_ptr() : nullptr,
                    .partial = floats(partial),
                    .weight_grad = floats(weight_grad_D),
                    .shift_grad = floats(shift_grad_D),
                    .bias_grad = floats(bias_grad_D)});
  return {sum_ND, dense_ND};
}

Normed norm(const at::Tensor& x_ND, const at::Tensor& weight_D, const at::Tensor& shift_D, double eps) {
  const Normed made{at::empty_like(x_ND), x_ND, sums(x_ND, x_ND.size(0), 2)};
  start(NormJob{.rows = x_ND.size(0),
                .width = x_ND.size(1),
                .residual = x_ND.data_ptr(),
                .residual_stride = x_ND.stride(0),
                .weight = floats(weight_D),
                .shift = floats(shift_D),
                .eps = static_cast<float>(eps),
                .stats = floats(made.stats_N2),
                .out = made.out_ND.data_ptr()});
  return made;
}

at::Tensor add_dropped(const at::Tensor& residual_ND, const at::Tensor& dense_ND, const at::Tensor& bias_D,
                       const Drop& drop) {
  const at::Tensor sum_ND = at::empty_like(dense_ND);
  start(sum_job(dense_ND, bias_D, residual_ND, drop, sum_ND));
  return sum_ND;
}

at::Tensor add_dropped_grad(const at::Tensor& grad_ND, const Drop& drop, const at::Tensor& bias_grad_D) {
  const int64_t N = grad_ND.size(0), D = grad_ND.size(1);
  const at::Tensor made = drop.active() ? at::empty_like(grad_ND) : grad_ND;
  const at::Tensor partial = sums(grad_ND, row_chunks(N), D);
  JoinJob job{.rows = N, .width = D, .parts = 1};
  job.from[0] = grad_ND.data_ptr();
  job.out = drop.active() ? made.data_ptr() : nullptr;
  job.drop = drop_job(drop);
  job.partial = floats(partial);
  job.sums[0] = floats(bias_grad_D);
  start(job);
  return made;
}

at::Tensor drop(const at::Tensor& x_ND, const Drop& drop) {
  const at::Tensor partial = sums(x_ND, row_chunks(x_ND.size(0)), x_ND.size(1)), made = at::empty_like(x_ND);
  JoinJob job{.rows = x_ND.size(0), .width = x_ND.size(1), .parts = 1};
  job.from[0] = x_ND.data_ptr();
  job.out = made.data_ptr();
  job.drop = drop_job(drop);
  job.partial = floats(partial);
  start(job);
  return made;
}

at::Tensor cross_entropy(const at::Tensor& logits_NV, int64_t classes, const at::Tensor& labels_N,
                         int64_t nothing) {
  check(logits_NV.is_contiguous() && logits_NV.size(1) % 8 == 0 && logits_NV.size(1) >= classes,
        "rows of logits are whole vectors");
  const at::Tensor losses_N = at::empty({logits_NV.size(0)}, logits_NV.options().dtype(at::kFloat));
  start(EntropyJob{.rows = logits_NV.size(0),
                   .classes = classes,
                   .stride = logits_NV.size(1),
                   .logits = logits_NV.data_ptr(),
                   .labels = labels_N.data_ptr<int64_t>(),
                   .nothing = nothing,
                   .losses = floats(losses_N)});
  return losses_N;
}

at::Tensor gelu(const at::Tensor& up_NF, bool tanh, const Drop& drop) {
  const at::Tensor out_NF = at::empty_like(up_NF);
  start(GeluJob{.rows = up_NF.size(0),
                .width = up_NF.size(1),
                .tanh = tanh,
                .in = up_NF.data_ptr(),
                .drop = drop_job(drop),
                .out = out_NF.data_ptr()});
  return out_NF;
}

void gelu_grad(const at::Tensor& grad_NF, const at::Tensor& up_NF, bool tanh, const Drop& drop,
               const at::Tensor& bias_grad_F) {
  const int64_t N = up_NF.size(0), F = up_NF.size(1);
  const at::Tensor partial = sums(up_NF, row_chunks(N), F);
  start(GeluGradJob{.rows = N,
                    .width = F,
                    .tanh = tanh,
                    .in = up_NF.data_ptr(),
                    .drop = drop_job(drop),
                    .grad = grad_NF.data_ptr(),
                    .partial = floats(partial),
                    .bias_grad = floats(bias_grad_F)});
}

at::Tensor join_and_sum(const std::vector<at::Tensor>& parts_ND, const std::vector<at::Tensor>& sums_D) {
  check(!parts_ND.empty() && parts_ND.size() <= JoinJob::kMost && parts_ND.size() == sums_D.size(),
        "one sum for each part");
  JoinJob job{
      .rows = parts_ND[0].size(0), .width = parts_ND[0].size(1), .parts = static_cast<int>(parts_ND.size())};
  const int64_t all = job.width * job.parts;
  const at::Tensor out = at::empty({job.rows, all}, parts_ND[0].options());
  const at::Tensor partial = sums(out, row_chunks(job.rows), all);
  for (size_t i = 0; i < parts_ND.size(); ++i) {
    check(parts_ND[i].is_contiguous(), "parts lie whole in memory");
    job.from[i] = parts_ND[i].data_ptr();
    job.sums[i] = floats(sums_D[i]);
  }
  job.out = out.data_ptr();
  job.partial = floats(partial);
  start(job);
  return out;
}

namespace {

EmbedJob embed_job(const Embedding& embedding, const at::Tensor& stats_N2) {
  return {.rows = embedding.ids_BL.numel(),
          .width = embedding.tables.word_VD.size(1),
          .length = embedding.ids_BL.size(1),
          .ids = embedding.ids_BL.data_ptr<int64_t>(),
          .types = embedding.types_BL.defined() ? embedding.types_BL.data_ptr<int64_t>() : nullptr,
          .word = embedding.tables.word_VD.data_ptr(),
          .position = embedding.tables.position_PD.data_ptr(),
          .type = embedding.types_BL.defined() ? embedding.tables.type_TD.data_ptr() : nullptr,
          .weight = floats(embedding.weight_D),
          .shift = floats(embedding.shift_D),
          .eps = static_cast<float>(embedding.eps),
          .drop = drop_job(embedding.drop),
          .stats = floats(stats_N2)};
}

}  // namespace

Embedded embed(const Embedding& embedding) {
  const int64_t B = embedding.ids_BL.size(0), L = embedding.ids_BL.size(1);
  const at::Tensor& table = embedding.tables.word_VD;
  const Embedded made{at::empty({B, L, table.size(1)}, table.options()), sums(table, B * L, 2)};
  EmbedJob job = embed_job(embedding, made.stats_N2);
  job.out = made.out_BLD.data_ptr();
  start(job);
  return made;
}

void embed_grads(const at::Tensor& grad_BLD, const Embedding& embedding, const at::Tensor& stats_N2,
                 const Tables& table_grads, const at::Tensor& weight_grad_D, const at::Tensor& shift_grad_D) {
  const int64_t B = grad_BLD.size(0), L = grad_BLD.size(1), D = grad_BLD.size(2), N = B * L;
  const at::Tensor sum_ND = at::empty({N, D}, grad_BLD.options());
  const at::Tensor partial = sums(sum_ND, 2 * norm_blocks(N), D);
  start(EmbedGradJob{.of = embed_job(embedding, stats_N2),
                     .grad = grad_BLD.data_ptr(),
                     .sum_grad = sum_ND.data_ptr(),
                     .partial = floats(partial),
                     .weight_grad = floats(weight_grad_D),
                     .shift_grad = floats(shift_grad_D)});
  const auto [sorted_N, order_N] = embedding.ids_BL.flatten().sort(true, 0, false);
  start(ScatterJob{.count = N,
                   .width = D,
                   .pad = embedding.pad_token,
                   .ids = sorted_N.data_ptr<int64_t>(),
                   .order = order_N.data_ptr<int64_t>(),
                   .rows = sum_ND.data_ptr(),
                   .table = floats(table_grads.word_VD)});
  table_grads.position_PD.narrow(0, 0, L).add_(at::sum(sum_ND.view({B, L, D}), {0}, false, at::kFloat));
  if (!embedding.types_BL.defined()) return;
  const at::Tensor types_NT = embedding.types_BL.flatten().unsqueeze(1).eq(
      at::arange(table_grads.type_TD.size(0), embedding.types_BL.options()));
  add_product(table_grads.type_TD, types_NT.to(sum_ND.scalar_type()), sum_ND);
}

void set_product(const at::Tensor& out_MN, const at::Tensor& a_NM, const at::Tensor& b_NN, bool add) {
  at::Tensor out = out_MN;
  at::addmm_out(out, out, a_NM.t(), b_NN, at::kFloat, add ? 1 : 0, 1);
}

void add_product(const at::Tensor& out_MN, const at::Tensor& a_NM, const at::Tensor& b_NN) {
  set_product(out_MN, a_NM, b_NN, true);
}

}  // namespace syncopate::gpu
