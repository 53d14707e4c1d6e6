#include "syncopate/nn/layers/layers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "syncopate/base/rng.h"
#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/nn/layers/fast/layers.h"
#include "syncopate/nn/layers/layers_plain.h"

// Our kernels, in every instruction set of this CPU, against the plain compositions in double precision:
// values and every gradient, with and without dropout, at sizes that are no multiple of any register.
namespace syncopate::nn {
namespace {

struct Size {
  int64_t B, L, D, H, F;
};

const std::vector<Size> kSizes = {
    {1, 1, 4, 1, 3}, {2, 5, 12, 3, 20}, {3, 37, 40, 5, 72}, {2, 70, 48, 2, 33}, {2, 128, 64, 1, 130}};

at::Tensor leaf(at::IntArrayRef shape, double scale) {
  return (at::randn(shape) * scale).set_requires_grad(true);
}

LinearParams linear(int64_t out, int64_t in) {
  return {leaf({out, in}, 1.5 / std::sqrt(in)), leaf({out}, 0.5)};
}

NormParams norm(int64_t width) {
  return {(at::randn({width}) * 0.3 + 1).set_requires_grad(true), leaf({width}, 0.3)};
}

at::Tensor twin(const at::Tensor& x) {
  return x.detach().to(at::kDouble).set_requires_grad(x.requires_grad());
}
LinearParams twin(const LinearParams& p) { return {twin(p.weight), twin(p.bias)}; }
NormParams twin(const NormParams& p) { return {twin(p.weight), twin(p.bias)}; }

double error_of(const at::Tensor& found, const at::Tensor& right) {
  const double largest = std::max(right.abs().max().item<double>(), 1e-3);
  return (found.to(at::kDouble) - right).abs().max().item<double>() / largest;
}

/// Backward through a fixed random weighting of the output; the gradients of `inputs`.
std::vector<at::Tensor> grads_of(const at::Tensor& out, const std::vector<at::Tensor>& inputs,
                                 uint64_t seed) {
  at::manual_seed(seed);
  (out * at::randn(out.sizes(), at::kDouble).to(out.scalar_type())).sum().backward();
  std::vector<at::Tensor> grads;
  for (const at::Tensor& input : inputs) grads.push_back(input.grad());
  return grads;
}

void expect_same(const at::Tensor& out, const std::vector<at::Tensor>& inputs, const at::Tensor& right,
                 const std::vector<at::Tensor>& right_inputs, const std::string& where) {
  ASSERT_EQ(out.sizes(), right.sizes()) << where;
  EXPECT_LT(error_of(out.detach(), right.detach()), 3e-6) << where;
  const auto found = grads_of(out, inputs, 5), expected = grads_of(right, right_inputs, 5);
  double zero_scale = 0;
  for (const at::Tensor& each : expected) zero_scale = std::max(zero_scale, each.abs().max().item<double>());
  for (size_t i = 0; i < found.size(); ++i) {
    if (expected[i].abs().max().item<double>() < 1e-9 * zero_scale) {  // mathematically zero
      EXPECT_LT(found[i].abs().max().item<double>(), 1e-6 * zero_scale) << where << " gradient " << i;
    } else {
      EXPECT_LT(error_of(found[i], expected[i]), 1e-5) << where << " gradient " << i;
    }
  }
}

/// Runs `body` for every instruction set, size and rate of dropout.
void for_all(const std::function<void(const Size&, double rate, const std::string& where)>& body) {
  const kernels::Kernels& usual = kernels::kernels();
  for (const kernels::Kernels* set : kernels::supported_kernels()) {
    kernels::use_kernels(*set);
    for (const Size& size : kSizes) {
      for (const double rate : {0.0, 0.25}) {
        at::manual_seed(size.L);
        body(size, rate, fmt::format("{} L={} rate {}", set->name, size.L, rate));
      }
    }
  }
  kernels::use_kernels(usual);
}

Noise noise_of(uint64_t key, double rate) { return rate > 0 ? make_noise(key, rate) : Noise{}; }

/// Rows of the noise as they come for examples of a shuffled data set: any numbers in any order.
NoiseRows some_rows(int64_t count) {
  auto rows = std::make_shared<std::vector<uint64_t>>();
  for (int64_t i = 0; i < count; ++i) rows->push_back(mix(static_cast<uint64_t>(i * i)));
  return rows;
}

TEST(Layers, UsesTheFastestInstructionSet) {
  EXPECT_EQ(&kernels::kernels(), kernels::supported_kernels().back());
  EXPECT_STREQ(kernels::supported_kernels().front()->name, "baseline");
}

TEST(Layers, FeedForward) {
  for_all([](const Size& s, double rate, const std::string& where) {
    for (const Activation activation : {Activation::kGelu, Activation::kGeluTanh}) {
      const FeedForwardParams params = {linear(s.F, s.D), linear(s.D, s.F), norm(s.D)};
      const FeedForwardParams wide = {twin(params.up), twin(params.down), twin(params.norm)};
      const at::Tensor x = leaf({s.B, s.L, s.D}, 1), wide_x = twin(x);
      FeedForwardOptions options;
      options.activation = activation;
      options.inner_noise = noise_of(1, rate);
      options.output_noise = noise_of(2, rate);
      options.output_noise.rows = some_rows(s.B * s.L);
      const auto inputs = [](const at::Tensor& in, const FeedForwardParams& p) -> std::vector<at::Tensor> {
        return {in, p.up.weight, p.up.bias, p.down.weight, p.down.bias, p.norm.weight, p.norm.bias};
      };
      expect_same(fast::feed_forward(params, x, options), inputs(x, params),
                  plain::feed_forward(wide, wide_x, options), inputs(wide_x, wide), where);
    }
  });
}

struct AttentionCase {
  AttentionParams params, wide;
  at::Tensor x, wide_x, mask, wide_mask;
  AttentionOptions options;

  AttentionCase(const Size& s, double rate, bool first_only, bool masked) {
    params = {linear(s.D, s.D), linear(s.D, s.D), linear(s.D, s.D), linear(s.D, s.D), norm(s.D)};
    wide = {twin(params.query), twin(params.key), twin(params.value), twin(params.output), twin(params.norm)};
    x = leaf({s.B, s.L, s.D}, 1);
    wide_x = twin(x);
    if (masked) {
      mask = at::rand({s.B, s.L}).gt(0.7).to(at::kFloat) * std::numeric_limits<float>::lowest();
      mask.select(1, 0).zero_();
      wide_mask = mask.to(at::kDouble);
    }
    options.heads = s.H;
    options.first_only = first_only;
    options.probs_noise = noise_of(3, rate);
    options.output_noise = noise_of(4, rate);
    if (first_only) options.probs_noise.rows = options.output_noise.rows = some_rows(s.B);
  }

  static std::vector<at::Tensor> inputs(const at::Tensor& in, const AttentionParams& p) {
    return {in,           p.query.weight,  p.query.bias,  p.key.weight,  p.key.bias, p.value.weight,
            p.value.bias, p.output.weight, p.output.bias, p.norm.weight, p.norm.bias};
  }
};

TEST(Layers, Attention) {
  for_all([](const Size& s, double rate, const std::string& where) {
    for (const bool first_only : {false, true}) {
      for (const bool masked : {false, true}) {
        const AttentionCase c(s, rate, first_only, masked);
        expect_same(fast::attend(c.params, c.x, c.mask, c.options), AttentionCase::inputs(c.x, c.params),
                    plain::attend(c.wide, c.wide_x, c.wide_mask, c.options),
                    AttentionCase::inputs(c.wide_x, c.wide),
                    fmt::format("{} first {} masked {}", where, first_only, masked));
      }
    }
  });
}

TEST(Layers, AttentionOfPackedRows) {
  for_all([](const Size& s, double rate, const std::string& where) {
    if (s.B == 1) return;  // there would be no padding
    const at::Tensor lengths_B1 = s.L - at::arange(s.B).unsqueeze(1) * (s.L / s.B);
    const at::Tensor real_BL = at::arange(s.L).unsqueeze(0).lt(lengths_B1);
    tensor::Batch batch;
    batch.fields["attention_mask"] = real_BL.to(at::kLong);
    for (const bool first_only : {false, true}) {
      const AttentionCase c(s, rate, first_only, false);
      AttentionOptions padded = c.options, packed = c.options;
      packed.packed = packing_of(batch);
      ASSERT_NE(packed.packed, nullptr);
      at::Tensor asked = at::ones({s.B, 1, 1}, at::kDouble);
      if (!first_only) {
        asked = real_BL.unsqueeze(2).to(at::kDouble);
        padded.probs_noise.rows = padded.output_noise.rows = some_rows(s.B * s.L);
        packed.probs_noise.rows = packed.output_noise.rows =
            chosen_rows(padded.output_noise.rows, packed.packed->places_N);
      }
      const at::Tensor mask_BL = real_BL.logical_not().to(at::kDouble) * std::numeric_limits<float>::lowest();
      at::Tensor out = fast::attend(c.params, pack(c.x, *packed.packed), {}, packed);
      if (!first_only) out = unpack(out, *packed.packed);
      expect_same(out, AttentionCase::inputs(c.x, c.params),
                  plain::attend(c.wide, c.wide_x, mask_BL, padded) * asked,
                  AttentionCase::inputs(c.wide_x, c.wide), fmt::format("{} first {}", where, first_only));
      const at::Tensor foil = plain::attend(c.wide, c.wide_x, {}, padded) * asked;
      EXPECT_GT(error_of(out.detach(), foil.detach()), 1e-3) << where << ": padding is seen";
    }
  });
}

TEST(Layers, AttentionFoilsDiffer) {
  const AttentionCase c({2, 37, 40, 5, 1}, 0.25, false, true);
  const at::Tensor right = plain::attend(c.wide, c.wide_x, c.wide_mask, c.options).detach();
  const auto error = [&](const at::Tensor& mask, const AttentionOptions& options) {
    return error_of(fast::attend(c.params, c.x, mask, options).detach(), right);
  };
  EXPECT_LT(error(c.mask, c.options), 3e-6);
  EXPECT_GT(error({}, c.options), 1e-2);
  AttentionOptions other = c.options;
  other.probs_noise.key += 1;
  EXPECT_GT(error(c.mask, other), 1e-2);
  other = c.options;
  other.output_noise.rows = some_rows(2 * 37);
  EXPECT_GT(error(c.mask, other), 1e-2);
  other = c.options;
  other.probs_noise.rows = some_rows(2 * 37);
  EXPECT_GT(error(c.mask, other), 1e-2);
  other = c.options;
  other.heads = 4;
  EXPECT_GT(error(c.mask, other), 1e-2);
}

TEST(Layers, AttentionWithoutGradientIsTheSame) {
  const AttentionCase c({2, 70, 48, 2, 1}, 0.25, false, true);
  const at::Tensor kept = fast::attend(c.params, c.x, c.mask, c.options).detach();
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(fast::attend(c.params, c.x, c.mask, c.options), kept));
}

TEST(Layers, SoftmaxOfHugeScoresIsFinite) {
  for (const double scale : {1.0, 1e3, 1e5}) {
    AttentionCase c({1, 9, 8, 2, 1}, 0, false, true);
    c.x.detach().mul_(scale);
    const at::Tensor out = fast::attend(c.params, c.x, c.mask, c.options);
    out.sum().backward();
    EXPECT_TRUE(out.isfinite().all().item<bool>()) << scale;
    EXPECT_TRUE(c.x.grad().isfinite().all().item<bool>()) << scale;
  }
}

TEST(Layers, Embeddings) {
  for_all([](const Size& s, double rate, const std::string& where) {
    const EmbeddingParams params = {leaf({50, s.D}, 1), leaf({140, s.D}, 1), leaf({3, s.D}, 1), norm(s.D)};
    const EmbeddingParams wide = {twin(params.word), twin(params.position), twin(params.type),
                                  twin(params.norm)};
    const at::Tensor ids = at::randint(0, 50, {s.B, s.L}, at::kLong),
                     types = at::randint(0, 3, {s.B, s.L}, at::kLong);
    const auto inputs = [](const EmbeddingParams& p) -> std::vector<at::Tensor> {
      return {p.word, p.position, p.type, p.norm.weight, p.norm.bias};
    };
    const EmbeddingOptions options{.pad_token = 4, .noise = noise_of(6, rate)};
    expect_same(fast::embed(params, ids, types, options), inputs(params),
                plain::embed(wide, ids, types, options), inputs(wide), where);
    EXPECT_EQ(params.word.grad()[4].abs().max().item<float>(), 0) << where;
  });
}

TEST(Layers, GeluIsAccurateEverywhere) {
  const kernels::Kernels& usual = kernels::kernels();
  const at::Tensor x = at::linspace(-14, 14, 200001, at::kFloat).set_requires_grad(false),
                   bias = at::zeros({x.numel()});
  const at::Tensor wide = x.to(at::kDouble).set_requires_grad(true);
  for (const bool tanh : {false, true}) {
    const at::Tensor right = at::gelu(wide, tanh ? "tanh" : "none");
    wide.mutable_grad().reset();
    right.sum().backward();
    for (const kernels::Kernels* set : kernels::supported_kernels()) {
      const at::Tensor out = at::empty_like(x), grad = at::ones_like(x), bias_grad = at::zeros_like(x);
      kernels::GeluJob job;
      job.width = x.numel();
      job.tanh = tanh;
      job.in = x.data_ptr<float>();
      job.bias = bias.data_ptr<float>();
      job.out = out.data_ptr<float>();
      job.grad = grad.data_ptr<float>();
      set->gelu(job, 0, 1);
      const at::Tensor first = out.clone();
      set->gelu_grad(job, 0, 1, bias_grad.data_ptr<float>());
      EXPECT_TRUE(at::equal(first, out)) << set->name;
      EXPECT_TRUE(at::equal(grad, bias_grad)) << set->name;
      const at::Tensor error = (out.to(at::kDouble) - right.detach()).abs() / x.abs().clamp_min(1);
      EXPECT_LT(error.max().item<double>(), 3e-7) << set->name;
      EXPECT_LT((grad.to(at::kDouble) - wide.grad()).abs().max().item<double>(), 1e-6) << set->name;
    }
  }
  kernels::use_kernels(usual);
}

TEST(Layers, OtherTypesUseTheReferencePath) {
  const FeedForwardParams params = {twin(linear(6, 4)), twin(linear(4, 6)), twin(norm(4))};
  const at::Tensor x = at::randn({2, 3, 4}, at::kDouble);
  EXPECT_TRUE(at::equal(feed_forward(params, x, {}), plain::feed_forward(params, x, {})));
}

}  // namespace
}  // namespace syncopate::nn
