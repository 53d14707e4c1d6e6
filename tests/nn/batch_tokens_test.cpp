#include "syncopate/nn/layers/batch_tokens.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace syncopate::nn {
namespace {

tensor::Batch batch_with(const at::Tensor& mask_BL) {
  tensor::Batch batch;
  batch.fields["attention_mask"] = mask_BL;
  return batch;
}

TEST(AdditiveMask, IsFiniteInEveryType) {
  const tensor::Batch batch = batch_with(at::tensor({1, 1, 0, 0, 0, 0}, at::kLong).view({2, 3}));
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor mask_BL = additive_mask(batch, at::TensorOptions().dtype(type)).to(at::kDouble);
    EXPECT_TRUE(at::isfinite(mask_BL).all().item<bool>()) << type;
    EXPECT_TRUE(at::equal(mask_BL.eq(0), batch.at("attention_mask").ne(0))) << type;
    EXPECT_LE(mask_BL.min().item<double>(), -65504) << type;
    // An example without any real position looks at all alike, and at nothing that is not a number.
    EXPECT_TRUE(at::allclose(at::softmax(mask_BL, -1)[1], at::full({3}, 1.0 / 3, at::kDouble))) << type;
  }
}

TEST(AdditiveMask, LiesInRowsWhateverTheStrides) {
  const at::Tensor turned_BL = at::tensor({1, 1, 1, 0, 0, 0}, at::kLong).view({3, 2}).t();
  ASSERT_FALSE(turned_BL.is_contiguous());
  const at::Tensor mask_BL = additive_mask(batch_with(turned_BL), at::kFloat);
  EXPECT_TRUE(mask_BL.is_contiguous());
  EXPECT_TRUE(at::equal(mask_BL.eq(0), turned_BL.ne(0)));
}

TEST(AdditiveMask, IsAbsentWithoutPadding) {
  EXPECT_FALSE(additive_mask({}, at::kFloat).defined());
  EXPECT_FALSE(additive_mask(batch_with(at::ones({2, 3}, at::kLong)), at::kFloat).defined());
}

}  // namespace
}  // namespace syncopate::nn
