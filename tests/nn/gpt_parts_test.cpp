#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/nn/layers/causal_attention.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/layers/drop.h"
#include "syncopate/nn/layers/head_loss.h"

// The pieces of a GPT that run on kernels of our own, or otherwise than written.
namespace syncopate::nn {
namespace {

using tensor::Loss;

TEST(CausalAttention, KernelsMatchReference) {
  at::manual_seed(3);
  for (const int64_t L : {1, 7, 64, 65, 130, 200}) {
    for (const bool padded : {false, true}) {
      for (const double rate : {0.0, 0.3}) {
        const int64_t B = 2, H = 3, D = 24;
        const at::Tensor qkv = at::randn({B, L, 3 * D}).set_requires_grad(true);
        const at::Tensor ahead = at::randn({B, L, D});
        at::Tensor mask;
        if (padded) {
          mask = at::zeros({B, L});
          mask[1].slice(0, L / 2 + 1).fill_(std::numeric_limits<float>::lowest());
        }
        CausalOptions options{.heads = H, .noise = rate > 0 ? make_noise(11, rate) : Noise{}};
        const auto run = [&](bool plain, bool causal) {
          options.plain = plain;
          options.causal = causal;
          qkv.mutable_grad().reset();
          const at::Tensor out = causal_attention(qkv, mask, options);
          out.backward(ahead);
          return std::pair(out.detach(), qkv.grad().clone());
        };
        const auto fast = run(false, true), plain = run(true, true), foil = run(true, false);
        EXPECT_LT((fast.first - plain.first).abs().max().item<double>(), 1e-5) << L;
        EXPECT_LT((fast.second - plain.second).abs().max().item<double>(), 2e-5) << L;
        if (L > 1) {
          EXPECT_GT((fast.first - foil.first).abs().max().item<double>(), 1e-2) << L;
        }
        const at::NoGradGuard no_grad;  // without the probabilities kept
        options.plain = false;
        options.causal = true;
        EXPECT_TRUE(at::equal(causal_attention(qkv, mask, options), fast.first));
      }
    }
  }
}

TEST(Drop, KernelMatchesReference) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({5, 3, 37}).set_requires_grad(true);
  const at::Tensor residual = at::randn({5, 3, 37}).set_requires_grad(true);
  const at::Tensor ahead = at::randn({5, 3, 37});
  const Noise noise = make_noise(9, 0.4);
  const at::Tensor right = apply_noise(x, noise);
  EXPECT_TRUE(at::equal(drop(x, noise), right));
  EXPECT_TRUE(at::allclose(add_dropped(residual, x, noise), residual + right, 1e-6, 1e-6));
  add_dropped(residual, x, noise).backward(ahead);
  EXPECT_TRUE(at::equal(residual.grad(), ahead));
  EXPECT_TRUE(at::equal(x.grad(), apply_noise(ahead, noise)));
  EXPECT_FALSE(at::equal(drop(x, make_noise(10, 0.4)), right));
  EXPECT_TRUE(drop(x, {}).is_same(x));
}

TEST(HeadLoss, MatchesCrossEntropyOverAllLogits) {
  at::manual_seed(5);
  const int64_t N = 301, D = 12, V = 97;
  const at::Tensor hidden = at::randn({N, D}).set_requires_grad(true);
  const at::Tensor table = at::randn({V, D}).set_requires_grad(true);
  for (const bool some_asked_for_nothing : {false, true}) {
    at::Tensor labels = at::randint(0, V, {N}, at::kLong);
    if (some_asked_for_nothing) labels.slice(0, 0, N, 3).fill_(kNoLabel);
    const auto run = [&](bool whole, double factor) {
      hidden.mutable_grad().reset();
      table.mutable_grad().reset();
      const Loss loss =
          whole ? cross_entropy(at::mm(hidden, table.t()), labels) : head_loss(hidden, table, labels);
      (loss.sum * factor).backward();
      return std::tuple(loss, hidden.grad().clone(), table.grad().clone());
    };
    for (const double factor : {1.0, 0.25}) {
      const auto [loss, hidden_grad, table_grad] = run(false, factor);
      const auto [right, right_hidden, right_table] = run(true, factor);
      EXPECT_EQ(loss.count, right.count);
      EXPECT_NEAR(loss.sum.item<double>() / right.sum.item<double>(), 1, 1e-6);
      EXPECT_LT((hidden_grad - right_hidden).abs().max().item<double>(), 1e-5);
      EXPECT_LT((table_grad - right_table).abs().max().item<double>(), 2e-5);
    }
  }
  EXPECT_EQ(head_loss(hidden, table, at::full({N}, kNoLabel, at::kLong)).sum.item<double>(), 0);
  EXPECT_THROW(head_loss(hidden, table, at::full({N}, V, at::kLong)), DataError);
}

}  // namespace
}  // namespace syncopate::nn
