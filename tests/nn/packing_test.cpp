#include "syncopate/nn/layers/packing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/nn/kernels/kernels.h"
#include "tests/nn/small_models.h"

namespace syncopate::nn {
namespace {

using test::small_models;
using test::small_texts;

TEST(Packing, HoldsTheRowsOfRealTokens) {
  const Batch batch = small_texts(1);  // texts of 9, 4 and 6 tokens
  const Packed packed = packing_of(batch);
  ASSERT_NE(packed, nullptr);
  EXPECT_EQ(packed->starts, (std::vector<int64_t>{0, 9, 13, 19}));
  EXPECT_EQ(packed->areas, (std::vector<int64_t>{0, 81, 97, 133}));
  EXPECT_TRUE(at::equal(packed->places_N, batch.at("attention_mask").flatten().nonzero().squeeze(1)));
  EXPECT_TRUE(at::equal(packed->positions_N, packed->places_N.remainder(9)));

  const at::Tensor x = at::randn({3, 9, 2}), real = batch.at("attention_mask").unsqueeze(2).to(at::kFloat);
  EXPECT_TRUE(at::equal(unpack(pack(x, *packed), *packed), x * real));
  const at::Tensor places = at::tensor({8, 9, 21}, at::kLong);
  EXPECT_TRUE(at::equal(packed_rows(places, *packed), at::tensor({8, 9, 16}, at::kLong)));
  EXPECT_ANY_THROW(packed_rows(at::tensor({14}, at::kLong), *packed)) << "that is padding";

  const NoiseRows padded = rows_of(batch, batch.at("input_ids"));
  EXPECT_EQ(*rows_of(batch, *packed), *chosen_rows(padded, packed->places_N));
}

TEST(Packing, IsNotForOtherBatches) {
  Batch batch = small_texts(1);
  at::Tensor& mask = batch.fields["attention_mask"];
  mask[1].zero_();
  EXPECT_EQ(packing_of(batch), nullptr) << "a text of no tokens";
  mask[1][8] = 1;
  EXPECT_EQ(packing_of(batch), nullptr) << "padding in front";
  mask.fill_(1);
  EXPECT_EQ(packing_of(batch), nullptr) << "no padding";
  batch.fields.erase("attention_mask");
  EXPECT_EQ(packing_of(batch), nullptr);
}

/// The largest difference of loss and gradients, relative to the largest gradient.
double worst_difference(Model& a, Model& b, const Batch& batch) {
  std::vector<at::Tensor> losses;
  for (Model* model : {&a, &b}) {
    for (const auto& [name, parameter] : model->parameters()) parameter.mutable_grad() = at::Tensor();
    model->set_mode({.training = true, .noise_key = 7});
    const Loss loss = model->loss(model->forward(batch), batch);
    loss.sum.backward();
    losses.push_back(loss.sum.detach());
  }
  double worst = (losses[0] - losses[1]).abs().item<double>(), largest = 0;
  const auto ours = a.parameters(), theirs = b.parameters();
  for (size_t i = 0; i < ours.size(); ++i) {
    const at::Tensor left = ours[i].tensor.grad(), right = theirs[i].tensor.grad();
    largest = std::max(largest, right.abs().max().item<double>());
    worst = std::max(worst, (left - right).abs().max().item<double>());
  }
  return worst / largest;
}

TEST(Packing, LossAndGradientsAreThoseOfThePaddedBatch) {
  const kernels::Kernels& usual = kernels::kernels();
  int berts = 0;
  for (const test::SmallModel& kind : small_models()) {
    const auto packed = kind.make(1), padded = kind.make(1);
    auto* const bert = dynamic_cast<Bert*>(padded.get());
    if (bert == nullptr) continue;
    ++berts;
    const Batch batch = kind.batch(3);
    for (const kernels::Kernels* set : kernels::supported_kernels()) {
      kernels::use_kernels(*set);
      for (const bool whole : {false, true}) {
        dynamic_cast<Bert&>(*packed).set_whole_last_layer(whole);
        bert->set_padded(true);
        bert->set_plain(false);
        EXPECT_LT(worst_difference(*packed, *padded, batch), 1e-5) << kind.name << " " << set->name;
        bert->set_plain(true);
        EXPECT_LT(worst_difference(*packed, *padded, batch), 1e-5) << kind.name << " " << set->name;
      }
    }
    Batch foil = batch;  // one token more in a text
    foil.fields["attention_mask"] = batch.at("attention_mask").clone();
    foil.fields["attention_mask"][2][6] = 1;
    ++foil.real_tokens;
    const at::Tensor right = padded->forward(batch).detach(), wrong = packed->forward(foil).detach();
    EXPECT_GT((right - wrong).abs().max().item<double>(), 1e-3) << kind.name;
  }
  EXPECT_EQ(berts, 3);
  kernels::use_kernels(usual);
}

}  // namespace
}  // namespace syncopate::nn
