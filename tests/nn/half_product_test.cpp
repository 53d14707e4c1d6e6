// Products in bf16 on the CPU, by every set of kernels that it runs: against double precision of the rounded
// numbers.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/nn/layers/product.h"

namespace syncopate::nn {
namespace {

constexpr auto kBf16 = tensor::Precision::kBf16;
constexpr auto kFp32 = tensor::Precision::kFp32;

struct HalfProduct : ::testing::Test {
  void SetUp() override { at::manual_seed(3); }
  void TearDown() override {
    kernels::use_kernels(chosen);
    at::set_num_threads(threads);
  }

  const kernels::Kernels& chosen = kernels::kernels();
  const int threads = at::get_num_threads();
};

at::Tensor in_double(const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); }

/// The largest error, as a share of the sum of the products' magnitudes.
double error_of(const at::Tensor& found, const at::Tensor& a, const at::Tensor& b, const at::Tensor& start) {
  const at::Tensor right = at::mm(in_double(a), in_double(b)) + start;
  const at::Tensor size = at::mm(in_double(a).abs(), in_double(b).abs()) + start.abs() + 1e-30;
  return ((found.to(at::kDouble) - right).abs() / size).max().item<double>();
}

/// A matrix in memory of its own, inside of a larger one, or transposed, or both.
at::Tensor matrix(int64_t rows, int64_t columns, bool turned, bool inside) {
  const int64_t extra = inside ? 5 : 0;
  if (turned) return at::randn({columns, rows + extra}).narrow(1, 0, rows).t();
  return at::randn({rows, columns + extra}).narrow(1, 0, columns);
}

TEST_F(HalfProduct, IsThatOfTheRoundedNumbers) {
  struct Size {
    int64_t M, N, K;
  };
  const at::Tensor none = at::zeros({1}, at::kDouble);
  for (const kernels::Kernels* set : kernels::supported_kernels()) {
    kernels::use_kernels(*set);
    for (const auto& [M, N, K] :
         {Size{32, 32, 32}, {33, 47, 50}, {100, 40, 395}, {290, 65, 70}, {32, 33, 5000}}) {
      for (int way = 0; way < 8; ++way) {
        const at::Tensor a = matrix(M, K, way & 1, way & 4), b = matrix(K, N, way & 2, way & 4);
        SCOPED_TRACE(fmt::format("{}: {} x {} x {}, way {}", set->name, M, N, K, way));
        const at::Tensor made = product(a, b, kBf16);
        EXPECT_LT(error_of(made, a, b, none), 1e-6);
        EXPECT_GT(error_of(at::mm(a, b), a, b, none), 1e-5) << "the foil: without rounding";
        const at::Tensor bias = at::randn({N});
        EXPECT_LT(error_of(product(bias, a, b, kBf16), a, b, bias.to(at::kDouble)), 1e-6);
        const at::Tensor before = at::randn({M, N + 3});
        const at::Tensor sum = before.clone(), part = sum.narrow(1, 0, N);
        add_product(part, a, b, kBf16);
        EXPECT_LT(error_of(part, a, b, before.narrow(1, 0, N).to(at::kDouble)), 1e-6);
        EXPECT_TRUE(sum.narrow(1, N, 3).equal(before.narrow(1, N, 3))) << "nothing is written beside it";
        product_into(part, a, b, kBf16);
        EXPECT_TRUE(part.equal(made));
      }
    }
  }
}

TEST_F(HalfProduct, RoundsToTheNearestAndOfTwoToTheEvenOne) {
  const float up = 1 + 0x1.8p-8f, tie_down = 1 + 0x1p-8f, tie_up = 1 + 0x1.8p-7f, down = 1 + 0x1.ep-9f;
  const at::Tensor a = at::zeros({32, 32}), one = at::eye(32);
  const std::vector<std::pair<float, float>> pairs = {
      {up, 1 + 0x1p-7f}, {tie_down, 1}, {tie_up, 1 + 0x1p-6f}, {down, 1}, {-up, -1 - 0x1p-7f}, {3.0f, 3.0f}};
  for (size_t i = 0; i < pairs.size(); ++i) a[static_cast<int64_t>(i)][1] = pairs[i].first;
  for (const kernels::Kernels* set : kernels::supported_kernels()) {
    kernels::use_kernels(*set);
    for (const at::Tensor& made : {product(a, one, kBf16), product(one, a.t(), kBf16).t()}) {
      for (size_t i = 0; i < pairs.size(); ++i)
        EXPECT_EQ(made[static_cast<int64_t>(i)][1].item<float>(), pairs[i].second) << set->name << " " << i;
    }
  }
}

TEST_F(HalfProduct, KeepsWhatIsNoNumber) {
  const at::Tensor a = at::ones({32, 32}), b = at::ones({32, 32});
  a[3][4] = std::numeric_limits<float>::quiet_NaN();
  a[5][0] = std::numeric_limits<float>::infinity();
  for (const kernels::Kernels* set : kernels::supported_kernels()) {
    kernels::use_kernels(*set);
    const at::Tensor made = product(a, b, kBf16);
    EXPECT_TRUE(std::isnan(made[3][7].item<float>())) << set->name;
    EXPECT_TRUE(std::isinf(made[5][7].item<float>())) << set->name;
    EXPECT_EQ(made[0][0].item<float>(), 32) << set->name;
  }
}

TEST_F(HalfProduct, DoesNotDependOnTheNumberOfThreads) {
  const at::Tensor a = at::randn({170, 500}), b = at::randn({500, 130});
  at::set_num_threads(1);
  const at::Tensor one = product(a, b, kBf16);
  for (const int many : {2, 5}) {
    at::set_num_threads(many);
    EXPECT_TRUE(product(a, b, kBf16).equal(one)) << many;
  }
  EXPECT_FALSE(product(a, b, kFp32).equal(one)) << "the foil";
}

TEST_F(HalfProduct, FewRowsOrOtherPrecisionsAreLibtorchs) {
  const at::Tensor a = at::randn({40, 64}), b = at::randn({64, 40});
  EXPECT_TRUE(product(a.narrow(0, 0, 8), b, kBf16).equal(at::mm(a.narrow(0, 0, 8), b)));
  EXPECT_TRUE(product(a, b, kFp32).equal(at::mm(a, b)));
  EXPECT_FALSE(product(a, b, kBf16).equal(at::mm(a, b))) << "the foil";
  const at::Tensor empty = product(at::empty({0, 64}), b, kBf16);
  EXPECT_EQ(empty.sizes(), at::IntArrayRef({0, 40}));
}

TEST_F(HalfProduct, ProjectionHasTheGradientsOfItsProducts) {
  const at::Tensor x = at::randn({2, 40, 48}).set_requires_grad(true);
  const at::Tensor weight = at::randn({64, 48}).set_requires_grad(true);
  const at::Tensor bias = at::randn({64}).set_requires_grad(true);
  const at::Tensor along = at::randn({2, 40, 64});
  const auto grads = [&](const at::Tensor& out) {
    (out * along).sum().backward();
    std::vector<at::Tensor> found;
    for (const at::Tensor& input : {x, weight, bias}) {
      found.push_back(input.grad().clone());
      at::Tensor(input).mutable_grad().reset();
    }
    return found;
  };
  const auto right = grads(project(x, weight, bias));
  const tensor::Autocast autocast(kBf16, c10::kCPU);
  const auto made = grads(project(x, weight, bias));
  const auto turned = grads(project_input_first(x, weight.t(), bias));
  for (size_t i = 0; i < right.size(); ++i) {
    const double off = ((made[i] - right[i]).norm() / right[i].norm()).item<double>();
    EXPECT_LT(off, 0.01) << i;
    EXPECT_TRUE(i == 2 || off > 1e-4) << "the foil: it was rounded";
    EXPECT_TRUE(turned[i].equal(made[i])) << i;
  }
  EXPECT_TRUE(made[1].is_contiguous());
}

}  // namespace
}  // namespace syncopate::nn
