#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "syncopate/base/error.h"
#include "syncopate/optim/clip.h"
#include "syncopate/optim/optimizer.h"

namespace syncopate::optim {
namespace {

std::vector<tensor::NamedTensor> some_parameters() {
  return {{"weight", at::linspace(-1, 1, 21).view({3, 7}).clone().set_requires_grad(true)},
          {"bias", at::linspace(0.5, 2, 5).clone().set_requires_grad(true)},
          {"norm", at::linspace(0.9, 1.1, 17).clone().set_requires_grad(true)},
          {"table", at::linspace(2, -3, 12).view({4, 3}).clone().set_requires_grad(true)},
          {"zero", at::zeros({2, 3}).set_requires_grad(true)}};
}

/// Of element `i` of parameter `k`, at step `t`.
double gradient_at(size_t k, int64_t i, int t) {
  return std::sin(2.1 * static_cast<double>(k) + 0.7 * static_cast<double>(i) + 1.3 * t);
}

void set_gradients(tensor::FlatParams& params, int t, double factor) {
  params.zero_grads();
  for (size_t k = 0; k < params.entries().size(); ++k) {
    const auto& entry = params.entries()[k];
    for (int64_t i = 0; i < entry.size; ++i) {
      params.grads[entry.offset + i] = factor * gradient_at(k, i, t);
    }
  }
}

/// One parameter tensor in double, as the papers write it.
struct Tensor {
  bool adapted = false;
  std::vector<double> x, m, v;
};

double norm_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum);
}

struct Foil {
  bool adapt_all = false, no_correction = false, decay_outside = false, rate_outside = false;
};

void lamb_reference(Tensor& tensor, const std::vector<double>& g, int t, double lr, double decay, Foil foil) {
  std::vector<double> u(g.size());
  const double c1 = foil.no_correction ? 1 : 1 - std::pow(0.9, t);
  const double c2 = foil.no_correction ? 1 : 1 - std::pow(0.999, t);
  const bool adapted = tensor.adapted || foil.adapt_all;
  for (size_t i = 0; i < g.size(); ++i) {
    tensor.m[i] = 0.9 * tensor.m[i] + 0.1 * g[i];
    tensor.v[i] = 0.999 * tensor.v[i] + 0.001 * g[i] * g[i];
    u[i] = tensor.m[i] / c1 / (std::sqrt(tensor.v[i] / c2) + 1e-6);
    if (tensor.adapted && !foil.decay_outside) u[i] += decay * tensor.x[i];
  }
  const double ratio =
      adapted && norm_of(tensor.x) > 0 && norm_of(u) > 0 ? norm_of(tensor.x) / norm_of(u) : 1;
  for (size_t i = 0; i < g.size(); ++i) {
    if (tensor.adapted && foil.decay_outside) tensor.x[i] -= lr * decay * tensor.x[i];
    tensor.x[i] -= lr * ratio * u[i];
  }
}

void lars_reference(Tensor& tensor, const std::vector<double>& g, int, double lr, double decay, Foil foil) {
  const bool adapted = tensor.adapted || foil.adapt_all;
  const double size = norm_of(tensor.x), slope = norm_of(g);
  const double pull = tensor.adapted ? decay : 0;
  const double ratio = adapted && size > 0 && slope > 0 ? 0.02 * size / (slope + pull * size + 1e-6) : 1;
  for (size_t i = 0; i < g.size(); ++i) {
    const double step = ratio * (g[i] + pull * tensor.x[i]);
    tensor.m[i] = 0.9 * tensor.m[i] + (foil.rate_outside ? 1 : lr) * step;
    tensor.x[i] -= (foil.rate_outside ? lr : 1) * tensor.m[i];
  }
}

using Reference = std::function<void(Tensor&, const std::vector<double>&, int, double, double, Foil)>;

/// The largest difference to the reference over twenty steps at a changing rate.
double worst_difference(const OptimizerOptions& options, const Reference& reference, Foil foil = {}) {
  tensor::FlatParams params(some_parameters());
  const auto optimizer = make_optimizer(options, params);
  std::vector<Tensor> plain;
  for (const auto& entry : params.entries()) {
    Tensor tensor{entry.decay, {}, {}, {}};
    for (int64_t i = 0; i < entry.size; ++i) {
      tensor.x.push_back(params.values[entry.offset + i].item<double>());
    }
    tensor.m.resize(tensor.x.size());
    tensor.v.resize(tensor.x.size());
    plain.push_back(tensor);
  }
  double worst = 0;
  for (int t = 1; t <= 20; ++t) {
    const double lr = t < 10 ? 1e-2 : 5e-3;
    set_gradients(params, t, 4);
    optimizer->step(params, lr, 0.25);
    for (size_t k = 0; k < plain.size(); ++k) {
      const auto& entry = params.entries()[k];
      std::vector<double> g;
      for (int64_t i = 0; i < entry.size; ++i) g.push_back(gradient_at(k, i, t));
      reference(plain[k], g, t, lr, options.weight_decay, foil);
      for (int64_t i = 0; i < entry.size; ++i) {
        const double got = params.values[entry.offset + i].item<double>();
        worst = std::max(worst, std::abs(plain[k].x[static_cast<size_t>(i)] - got));
      }
    }
  }
  return worst;
}

TEST(Lamb, MatchesThePapersFormula) {
  for (const bool plain : {false, true}) {
    const OptimizerOptions options{.kind = "lamb", .weight_decay = 0.1, .eps = 1e-6, .plain = plain};
    EXPECT_LT(worst_difference(options, lamb_reference), 5e-6) << plain;
    EXPECT_GT(worst_difference(options, lamb_reference, {.adapt_all = true}), 1e-3);
    EXPECT_GT(worst_difference(options, lamb_reference, {.no_correction = true}), 1e-3);
    EXPECT_GT(worst_difference(options, lamb_reference, {.decay_outside = true}), 1e-4);
  }
}

TEST(Lars, MatchesThePapersFormula) {
  for (const bool plain : {false, true}) {
    const OptimizerOptions options{
        .kind = "lars", .weight_decay = 0.1, .eps = 1e-6, .trust = 0.02, .plain = plain};
    EXPECT_LT(worst_difference(options, lars_reference), 5e-6) << plain;
    EXPECT_GT(worst_difference(options, lars_reference, {.adapt_all = true}), 1e-3);
    EXPECT_GT(worst_difference(options, lars_reference, {.rate_outside = true}), 1e-6 * 50);
  }
}

TEST(Sgd, NesterovLooksAheadAlongTheMomentum) {
  for (const bool plain : {false, true}) {
    tensor::FlatParams params({{"w", at::full({1, 1}, 2.0).set_requires_grad(true)}});
    const auto optimizer = make_optimizer(
        {.kind = "sgd", .weight_decay = 0.1, .momentum = 0.5, .nesterov = true, .plain = plain}, params);
    params.grads.narrow(0, 0, 1).fill_(1);
    optimizer->step(params, 0.1, 1);  // g = 1.2, m = 1.2, step g + m / 2 = 1.8
    EXPECT_NEAR(params.values[0].item<double>(), 2 - 0.18, 1e-6);
    optimizer->step(params, 0.1, 1);  // g = 1.182, m = 0.6 + 1.182, step 1.182 + 0.891
    EXPECT_NEAR(params.values[0].item<double>(), 1.82 - 0.2073, 1e-6);
  }
}

tensor::FlatParams params_of(at::ScalarType type) {
  std::vector<tensor::NamedTensor> parameters;
  for (const auto& [name, value] : some_parameters()) {
    parameters.push_back({name, value.detach().to(type).set_requires_grad(true)});
  }
  return tensor::FlatParams(parameters);
}

at::Tensor values_after(OptimizerOptions options, at::ScalarType type, int steps = 15) {
  tensor::FlatParams params = params_of(type);
  const auto optimizer = make_optimizer(options, params);
  for (int t = 1; t <= steps; ++t) {
    set_gradients(params, t, 2);
    optimizer->step(params, 1e-2, 0.5 * clip_factor(gradient_norm(params.grads, 0.5), 3));
  }
  return params.values.to(at::kDouble);
}

/// Gaps between parameters differ with the type; the parameters alone are compared.
at::Tensor parameters_after(const OptimizerOptions& options, at::ScalarType type) {
  const tensor::FlatParams layout = params_of(type);
  const at::Tensor values = values_after(options, type);
  std::vector<at::Tensor> parts;
  for (const auto& entry : layout.entries()) parts.push_back(values.narrow(0, entry.offset, entry.size));
  return at::cat(parts);
}

TEST(Optimizers, AtenPathMatchesOurKernels) {
  for (const std::string& kind : optimizer_names()) {
    for (const bool nesterov : {false, true}) {
      if (nesterov && kind != "sgd") continue;
      OptimizerOptions options{.kind = kind, .weight_decay = 0.1, .nesterov = nesterov, .trust = 0.05};
      const at::Tensor fast = values_after(options, at::kFloat);
      options.plain = true;
      EXPECT_LT((values_after(options, at::kFloat) - fast).abs().max().item<double>(), 2e-6) << kind;
      options.weight_decay = 0;
      EXPECT_GT((values_after(options, at::kFloat) - fast).abs().max().item<double>(), 1e-5) << kind;
    }
  }
}

TEST(Optimizers, SupportParametersOfAnyType) {
  for (const std::string& kind : optimizer_names()) {
    const OptimizerOptions options{.kind = kind, .weight_decay = 0.1, .trust = 0.05};
    tensor::FlatParams half = params_of(at::kBFloat16);
    for (const auto& [name, state] : make_optimizer(options, half)->state()) {
      EXPECT_EQ(state.scalar_type(), at::kFloat) << "what is kept has more bits than the parameters";
    }
    const at::Tensor usual = parameters_after(options, at::kFloat);
    const auto apart = [&](at::ScalarType type) {
      return (parameters_after(options, type) - usual).abs().max().item<double>();
    };
    EXPECT_LT(apart(at::kDouble), 5e-6) << kind;
    EXPECT_LT(apart(at::kBFloat16), 0.05) << kind;
    EXPECT_GT(apart(at::kBFloat16), 1e-5) << kind;
  }
  const at::Tensor flat = at::linspace(-3, 3, 70001);
  EXPECT_NEAR(gradient_norm(flat.to(at::kDouble), -0.5), gradient_norm(flat, 0.5), 1e-4);
}

TEST(Optimizers, AnyNumberOfThreadsGivesTheSameBits) {
  for (const char* kind : {"lamb", "lars"}) {
    const auto values_with = [&](int threads) {
      at::set_num_threads(1);
      at::Tensor big = at::linspace(-2, 2, 300000).view({300, 1000}).set_requires_grad(true);
      tensor::FlatParams params({{"big", big}, {"bias", at::ones({70000}).set_requires_grad(true)}});
      const auto optimizer = make_optimizer({.kind = kind}, params);
      params.grads.copy_(at::sin(params.values * 50));
      at::set_num_threads(threads);
      for (int i = 0; i < 3; ++i) optimizer->step(params, 1e-2, 1);
      at::set_num_threads(1);
      return params.values.clone();
    };
    EXPECT_TRUE(at::equal(values_with(1), values_with(2))) << kind;
  }
}

TEST(Optimizers, ResumeBitForBit) {
  for (const std::string& kind : optimizer_names()) {
    const OptimizerOptions options{.kind = kind, .weight_decay = 0.1};
    tensor::FlatParams params(some_parameters()), resumed(some_parameters());
    const auto whole = make_optimizer(options, params);
    for (int t = 1; t <= 3; ++t) {
      set_gradients(params, t, 1);
      whole->step(params, 1e-2, 1);
    }
    const auto later = make_optimizer(options, resumed);
    resumed.values.copy_(params.values);
    for (size_t i = 0; i < later->state().size(); ++i) {
      later->state()[i].tensor.copy_(whole->state()[i].tensor);
    }
    later->set_steps_done(whole->steps_done());
    set_gradients(params, 4, 1);
    set_gradients(resumed, 4, 1);
    whole->step(params, 1e-2, 1);
    later->step(resumed, 1e-2, 1);
    EXPECT_TRUE(at::equal(params.values, resumed.values)) << kind;
  }
}

TEST(Optimizers, RejectInvalidOptions) {
  tensor::FlatParams params(some_parameters());
  EXPECT_THROW(make_optimizer({.kind = "adamw", .nesterov = true}, params), ConfigError);
  EXPECT_THROW(make_optimizer({.kind = "sgd", .momentum = 0, .nesterov = true}, params), ConfigError);
  EXPECT_THROW(make_optimizer({.kind = "lars", .trust = 0}, params), ConfigError);
  EXPECT_THROW(make_optimizer({.kind = "lamp"}, params), ConfigError);
}

}  // namespace
}  // namespace syncopate::optim
