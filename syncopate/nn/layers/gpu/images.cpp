#include "syncopate/nn/layers/gpu/images.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/gpu/batch_norm.h"
#include "syncopate/gpu/patches.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/support.h"
#include "syncopate/tensor/half_weights.h"

namespace syncopate::nn::on_gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A row for each pixel, without a copy where channels are last already.
at::Tensor pixels(const at::Tensor& x_BCHW) {
  return x_BCHW.contiguous(at::MemoryFormat::ChannelsLast)
      .permute({0, 2, 3, 1})
      .reshape({-1, x_BCHW.size(1)});
}

at::Tensor image(const at::Tensor& pixels_RC, at::IntArrayRef sizes_BCHW) {
  return pixels_RC.view({sizes_BCHW[0], sizes_BCHW[2], sizes_BCHW[3], sizes_BCHW[1]}).permute({0, 3, 1, 2});
}

struct NormWeights {
  Weight weight, bias;
  at::Tensor running_mean, running_var;
  double momentum = 0, eps = 0;
  bool relu = false, adds = false;
};

struct BatchNormRelu : torch::autograd::Function<BatchNormRelu> {
  /// `added` is x again where nothing is added: autograd's inputs may not be undefined.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x_BCHW, const at::Tensor& added_BCHW,
                               const NormWeights& norm, const at::Tensor&, const at::Tensor&) {
    const at::Tensor x_RC = pixels(x_BCHW);
    const gpu::BatchNormed made = gpu::batch_norm(
        x_RC, norm.weight.value, norm.bias.value, norm.adds ? pixels(added_BCHW) : at::Tensor(), norm.relu,
        norm.running_mean, norm.running_var, norm.momentum, norm.eps);
    ctx->save_for_backward({x_RC, made.stats_C2, made.let_through});
    ctx->saved_data["norm"] = fast::hold(norm);
    ctx->set_materialize_grads(false);  // the second may have no reader
    const at::Tensor out = image(made.out, x_BCHW.sizes());
    // The same memory, and no view of the first: autograd is to take them for two.
    const at::Tensor again =
        at::empty({0}, out.options()).set_(out.storage(), out.storage_offset(), out.sizes(), out.strides());
    return {out, again};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& norm = fast::held<NormWeights>(ctx->saved_data["norm"]);
    if (!grads[0].defined()) std::swap(grads[0], grads[1]);
    variable_list result(5);
    if (!grads[0].defined()) return result;
    const at::Tensor other_RC = grads[1].defined() ? pixels(grads[1]) : at::Tensor();
    const gpu::BatchNormGrads made = gpu::batch_norm_grads(
        pixels(grads[0]), other_RC, saved[0], {at::Tensor(), saved[1], saved[2]}, norm.weight.value,
        norm.bias.value, norm.adds, norm.relu, norm.weight.grad, norm.bias.grad);
    result[0] = image(made.x_RC, grads[0].sizes());
    if (norm.adds) result[1] = image(made.added_RC, grads[0].sizes());
    return result;
  }
};

struct ConvolutionWeight {
  Weight weight;
  int64_t stride, padding;
};

struct Convolution : torch::autograd::Function<Convolution> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BCHW, const ConvolutionWeight& with,
                            const at::Tensor&) {
    const at::Tensor laid = whole_vectors(with.weight.half), x = whole_vectors(x_BCHW);
    ctx->save_for_backward({x, laid});
    ctx->saved_data["with"] = fast::hold(with);
    ctx->saved_data["needed"] = x_BCHW.requires_grad();
    const std::vector<int64_t> strides(2, with.stride), paddings(2, with.padding);
    return at::conv2d(x, laid, {}, at::IntArrayRef(strides), at::IntArrayRef(paddings));
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& with = fast::held<ConvolutionWeight>(ctx->saved_data["with"]);
    const std::vector<int64_t> strides(2, with.stride), paddings(2, with.padding), ones(2, 1), none(2, 0);
    const bool needed = ctx->saved_data["needed"].toBool();
    const auto [x_grad, weight_grad, bias_grad] = at::convolution_backward(
        grads[0].contiguous(at::MemoryFormat::ChannelsLast), saved[0], saved[1], c10::nullopt, strides,
        paddings, ones, false, none, 1, {needed, true, false});
    const int64_t channels = with.weight.half.size(1);
    gpu::add_laid(with.weight.grad, weight_grad.contiguous(at::MemoryFormat::ChannelsLast));
    return {needed ? x_grad.narrow(1, 0, channels) : x_grad, at::Tensor(), at::Tensor()};
  }

  /// With channels last, and zeros added to three of them: the fast kernels read eight at a time.
  static at::Tensor whole_vectors(const at::Tensor& images) {
    const int64_t missing = (8 - images.size(1) % 8) % 8;
    const at::Tensor laid = images.contiguous(at::MemoryFormat::ChannelsLast);
    if (missing == 0) return laid;
    return at::constant_pad_nd(laid, {0, 0, 0, 0, 0, missing}).contiguous(at::MemoryFormat::ChannelsLast);
  }
};

/// A convolution of images, which have few channels and need no gradient, as one product.
struct ImageConvolution : torch::autograd::Function<ImageConvolution> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BCHW, const ConvolutionWeight& with,
                            const at::Tensor&) {
    const int64_t outputs = with.weight.half.size(0);
    const at::Tensor seen_RP = gpu::patches(x_BCHW);
    const at::Tensor laid_OK = with.weight.half.permute({0, 2, 3, 1}).reshape({outputs, -1});
    const at::Tensor weight_OP = at::constant_pad_nd(laid_OK, {0, gpu::kPatchWidth - laid_OK.size(1)});
    ctx->save_for_backward({seen_RP});
    ctx->saved_data["with"] = fast::hold(with);
    return image(at::mm(seen_RP, weight_OP.t()), {x_BCHW.size(0), outputs, x_BCHW.size(2), x_BCHW.size(3)});
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const at::Tensor seen_RP = ctx->get_saved_variables()[0];
    const auto& with = fast::held<ConvolutionWeight>(ctx->saved_data["with"]);
    const at::Tensor grad_RO = pixels(grads[0]);
    const at::Tensor& like = with.weight.half;
    const at::Tensor grad_OP = sum_of_products(grad_RO, seen_RP);
    const at::Tensor used = grad_OP.narrow(1, 0, like[0].numel());
    const at::Tensor grad_OIKK =
        used.reshape({like.size(0), like.size(2), like.size(3), like.size(1)}).permute({0, 3, 1, 2});
    gpu::add_laid(with.weight.grad, grad_OIKK.contiguous(at::MemoryFormat::ChannelsLast));
    return {at::Tensor(), at::Tensor(), at::Tensor()};
  }

  /// grad^T seen over very many rows: in stretches, so that the whole GPU has something to do.
  static at::Tensor sum_of_products(const at::Tensor& grad_RO, const at::Tensor& seen_RP) {
    constexpr int64_t kStretches = 128;
    const int64_t rows = grad_RO.size(0);
    if (rows % kStretches != 0 || rows < 64 * kStretches) return at::mm(grad_RO.t(), seen_RP);
    const at::Tensor grad = grad_RO.view({kStretches, -1, grad_RO.size(1)}),
                     seen = seen_RP.view({kStretches, -1, seen_RP.size(1)});
    return at::bmm(grad.transpose(1, 2), seen).sum(0);
  }
};

}  // namespace

bool can_norm(const at::Tensor& x_BCHW, const BatchNormParams& params, const BatchNormOptions& options) {
  return x_BCHW.is_cuda() && x_BCHW.scalar_type() == at::kBFloat16 && options.training && !options.sum &&
         has_copy(params.weight) && has_copy(params.bias) && gpu::takes_images(x_BCHW.size(1)) &&
         x_BCHW.numel() > x_BCHW.size(1);
}

Twice batch_norm(const at::Tensor& x_BCHW, const BatchNormParams& params, const BatchNormOptions& options,
                 const at::Tensor& added_BCHW, bool relu) {
  const NormWeights norm{Weight(params.weight),
                         Weight(params.bias),
                         options.again ? at::Tensor() : params.running_mean,
                         options.again ? at::Tensor() : params.running_var,
                         options.momentum,
                         options.eps,
                         relu,
                         added_BCHW.defined()};
  const variable_list made =
      BatchNormRelu::apply(x_BCHW, norm.adds ? added_BCHW : x_BCHW, norm, params.weight, params.bias);
  return {made[0], made[1]};
}

bool can_convolve(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK) {
  return x_BCHW.is_cuda() && has_copy(weight_OIKK) &&
         tensor::half_of(weight_OIKK).scalar_type() == at::kBFloat16;
}

bool reads_any_layout(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK) {
  return can_convolve(x_BCHW, weight_OIKK) && !x_BCHW.requires_grad() &&
         gpu::takes_patches(weight_OIKK.size(1)) && weight_OIKK.size(2) == gpu::kPatchSide &&
         weight_OIKK.size(3) == gpu::kPatchSide && weight_OIKK.size(0) % 8 == 0;
}

at::Tensor convolve(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK, int64_t stride,
                    int64_t padding) {
  const ConvolutionWeight with{Weight(weight_OIKK), stride, padding};
  if (stride == 1 && padding == gpu::kPatchSide / 2 && reads_any_layout(x_BCHW, weight_OIKK))
    return ImageConvolution::apply(x_BCHW, with, weight_OIKK);
  return Convolution::apply(x_BCHW.to(at::kBFloat16), with, weight_OIKK);
}

}  // namespace syncopate::nn::on_gpu
