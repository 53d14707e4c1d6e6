#include "syncopate/tensor/flat_params.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"

namespace syncopate::tensor {
namespace {

TEST(FlatParams, RebindsEveryParameterInReverseOrderAndAligned) {
  at::Tensor first = at::arange(6, at::kFloat).view({2, 3}).set_requires_grad(true);
  at::Tensor second = at::arange(5, at::kFloat).set_requires_grad(true);
  FlatParams params({{"first", first}, {"second", second}});
  ASSERT_EQ(params.entries().size(), 2u);
  EXPECT_EQ(params.entries()[0].name, "second");
  EXPECT_FALSE(params.entries()[0].decay);
  EXPECT_TRUE(params.entries()[1].decay);
  for (const auto& entry : params.entries()) EXPECT_EQ(entry.offset % 16, 0);
  params.values.mul_(2);
  EXPECT_EQ(first[1][2].item<float>(), 10);
  (first * 3).sum().backward();
  EXPECT_EQ(params.grad_of(params.entries()[1]).sum().item<float>(), 18);
  params.check_views();
  first.mutable_grad() = at::zeros({2, 3});
  EXPECT_THROW(params.check_views(), InternalError);
}

TEST(FlatParams, MovingStorageKeepsTheModelBound) {
  at::Tensor first = at::arange(6, at::kFloat).view({2, 3}).set_requires_grad(true);
  FlatParams params({{"first", first}});
  const at::Tensor storage = at::full_like(params.values, 3);
  params.move_values(storage);
  params.check_views();
  EXPECT_EQ(first.sum().item<float>(), 18);
  storage.fill_(4);
  EXPECT_EQ(first.sum().item<float>(), 24);
  (first * first).sum().backward();
  EXPECT_EQ(params.grads.sum().item<float>(), 48);
  EXPECT_THROW(params.move_values(at::zeros({3})), InternalError);

  const at::Tensor room = at::full_like(params.grads, 7);
  params.move_grads(room);
  params.check_views();
  params.zero_grads();
  (first * first).sum().backward();
  EXPECT_EQ(room.sum().item<float>(), 48);
  EXPECT_THROW(params.move_grads(at::zeros({3})), InternalError);
}

TEST(FlatParams, ZeroingByRowsZeroesAll) {
  at::Tensor table = at::zeros({6, 4}).set_requires_grad(true),
             rest = at::zeros({3, 3}).set_requires_grad(true);
  FlatParams params({{"table", table}, {"rest", rest}});
  params.grad_of(*params.find(rest)).fill_(1);
  table.grad()[2].fill_(1);
  table.grad()[4].fill_(1);
  const at::Tensor rows = at::tensor({4, 2, 2}, at::kLong);
  params.zero_grads({{table, rows}});
  EXPECT_EQ(params.grads.abs().sum().item<float>(), 0);
  table.grad()[5].fill_(1);
  params.zero_grads({{table, rows}});
  EXPECT_EQ(params.grads.abs().sum().item<float>(), 4) << "a row that was not named is left alone";
}

}  // namespace
}  // namespace syncopate::tensor
