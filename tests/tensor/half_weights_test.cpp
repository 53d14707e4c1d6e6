#include "syncopate/tensor/half_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace syncopate::tensor {
namespace {

at::Tensor leaf(at::IntArrayRef sizes, float first) {
  const int64_t count = c10::multiply_integers(sizes);
  return (at::arange(count, at::kFloat) + first).view(sizes).set_requires_grad(true);
}

struct Linears {
  at::Tensor first = leaf({8, 4}, 0), first_bias = leaf({8}, 50);
  at::Tensor second = leaf({8, 4}, 100), second_bias = leaf({8}, 150);
  FlatParams params{{{"first.weight", first},
                     {"first.bias", first_bias},
                     {"second.weight", second},
                     {"second.bias", second_bias}}};
};

TEST(HalfWeights, MatricesLieBehindEachOtherWhateverIsBetweenThem) {
  Linears model;
  model.params.keep_half(at::kBFloat16);
  const auto& entries = model.params.entries();
  for (const auto& entry : entries) model.params.half_of(entry).copy_(entry.parameter.detach());
  const at::Tensor* const second = &entries[1].parameter;
  ASSERT_TRUE(second->is_same(model.second));
  const at::Tensor half = model.params.half_of(entries[1]);
  // Both as one factor, the one that comes later in the model first.
  const at::Tensor joined = half.as_strided({16, 4}, {4, 1});
  EXPECT_TRUE(at::equal(joined.to(at::kFloat), at::cat({model.second.detach(), model.first.detach()})));
  EXPECT_NE(entries[1].offset + entries[1].size, entries[3].offset);  // not so in fp32
}

TEST(HalfWeights, AreFoundByTheirParameterWhileOffered) {
  Linears model, other;
  EXPECT_FALSE(half_of(model.first).defined());
  {
    const HalfWeights none(model.params);  // no copy is kept
    EXPECT_FALSE(half_of(model.first).defined());
  }
  model.params.keep_half(at::kBFloat16);
  const HalfWeights offered(model.params);
  for (const auto& entry : model.params.entries()) {
    EXPECT_EQ(half_of(entry.parameter).data_ptr(), model.params.half_of(entry).data_ptr()) << entry.name;
    EXPECT_EQ(half_of(entry.parameter).sizes(), entry.parameter.sizes()) << entry.name;
  }
  EXPECT_FALSE(half_of(other.first).defined());
  EXPECT_FALSE(half_of(model.first.detach().narrow(0, 1, 2)).defined());
}

TEST(HalfWeights, EndWithTheirRegion) {
  Linears outer, inner;
  outer.params.keep_half(at::kBFloat16);
  inner.params.keep_half(at::kBFloat16);
  const HalfWeights first(outer.params);
  {
    const HalfWeights second(inner.params);
    EXPECT_TRUE(half_of(inner.first).defined());
    EXPECT_FALSE(half_of(outer.first).defined());
  }
  EXPECT_TRUE(half_of(outer.first).defined());
  EXPECT_FALSE(half_of(inner.first).defined());
}

}  // namespace
}  // namespace syncopate::tensor
