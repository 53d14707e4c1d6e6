#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/nn/layers/batch_tokens.h"
#include "syncopate/tensor/flat_params.h"
#include "tests/nn/small_models.h"

// Batches in one of a few shapes: a GPU's recorded step serves all batches of its shape.
namespace syncopate::nn {
namespace {

TEST(CommonLength, IsOneOfAFew) {
  EXPECT_EQ(common_length(1), 16);
  EXPECT_EQ(common_length(16), 16);
  EXPECT_EQ(common_length(17), 32);
  EXPECT_EQ(common_length(256), 256);
  EXPECT_EQ(common_length(257), 288);
  EXPECT_EQ(common_length(1000), 1024);
  for (int64_t length = 1; length < 600; ++length) {
    const int64_t common = common_length(length);
    EXPECT_GE(common, length);
    EXPECT_LT(common - length, std::max<int64_t>(16, length / 8 + 1)) << length;
  }
}

struct ShapePasses {
  double loss = 0;
  at::Tensor grads;
  int64_t count = 0;
};

ShapePasses shape_passes(const test::SmallModel& small, const Batch& batch) {
  const auto model = small.make(1);
  model->set_mode({.training = true, .noise_key = 3});
  tensor::FlatParams params(model->parameters());
  const Loss loss = model->loss(model->forward(batch), batch);
  loss.sum.backward();
  return {loss.sum.item<double>(), params.grads.clone(), loss.count};
}

TEST(CommonShape, ChangesNeitherLossNorGradients) {
  int padded_ones = 0;
  for (const test::SmallModel& small : test::small_models()) {
    const Batch batch = small.batch(1);
    const Batch common = small.make(1)->in_common_shape(batch);
    const ShapePasses before = shape_passes(small, batch), after = shape_passes(small, common);
    EXPECT_NEAR(after.loss, before.loss, 1e-5 * std::abs(before.loss)) << small.name;
    EXPECT_EQ(after.count, before.count) << small.name;
    EXPECT_TRUE(at::allclose(after.grads, before.grads, 1e-4, 1e-5)) << small.name;
    EXPECT_FALSE(at::allclose(after.grads, shape_passes(small, small.batch(2)).grads, 1e-4, 1e-5))
        << small.name;
    if (batch.fields.count("input_ids") == 0 || !dynamic_cast<Bert*>(small.make(1).get())) continue;
    EXPECT_EQ(common.at("input_ids").size(1), 12) << small.name;  // as far as the model has positions
    if (batch.fields.count("masked") > 0) {
      EXPECT_EQ(common.at("masked").size(0) % 64, 0) << small.name;
    }
    ++padded_ones;
  }
  EXPECT_GE(padded_ones, 3);
}

TEST(CommonShape, IsOneForAllBatchesOfALength) {
  Batch first, second;
  first.fields["input_ids"] = at::ones({2, 9}, at::kLong);
  second.fields["input_ids"] = at::ones({2, 15}, at::kLong);
  first.ids = second.ids = {1, 2};
  first.fields["masked"] = at::tensor({3, 17}, at::kLong);
  first.fields["labels"] = at::tensor({5, 6}, at::kLong);
  second.fields["masked"] = at::tensor({3, 20, 29}, at::kLong);
  second.fields["labels"] = at::tensor({5, 6, 7}, at::kLong);
  const Batch a = padded(first, 16, 0), b = padded(second, 16, 0);
  for (const auto& [name, field] : a.fields) EXPECT_EQ(field.sizes(), b.at(name).sizes()) << name;
  EXPECT_EQ(a.at("masked")[1].item<int64_t>(), 16 + 8);  // row 1, position 8
  EXPECT_EQ(b.at("masked")[2].item<int64_t>(), 16 + 14);
  EXPECT_EQ(a.at("labels").ne(kNoLabel).sum().item<int64_t>(), 2);
  EXPECT_EQ(a.at("attention_mask").sum().item<int64_t>(), 18);
}

}  // namespace
}  // namespace syncopate::nn
