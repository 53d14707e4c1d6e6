#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <set>

#include "syncopate/base/error.h"
#include "syncopate/nn/bert/bert_heads.h"

namespace syncopate::nn {
namespace {

BertConfig mini_bert() {
  BertConfig config;
  config.vocab_size = 60;
  config.hidden = 24;
  config.layers = 3;
  config.heads = 3;
  config.ffn = 50;
  config.max_positions = 40;
  config.num_labels = 3;
  config.initializer_range = 0.2;
  return config;
}

/// Random words of different lengths, padded to `length`.
Batch random_texts(int64_t B, int64_t length, uint64_t seed = 1) {
  at::manual_seed(seed);
  Batch batch;
  const at::Tensor lengths = at::randint(2, length + 1, {B, 1}, at::kLong);
  lengths[0][0] = length;
  const at::Tensor mask = at::arange(length).unsqueeze(0).lt(lengths).to(at::kLong);
  batch.fields["attention_mask"] = mask;
  batch.fields["input_ids"] = at::randint(1, 60, {B, length}, at::kLong) * mask;
  batch.fields["token_type_ids"] = at::randint(0, 2, {B, length}, at::kLong) * mask;
  batch.fields["labels"] = at::randint(0, 3, {B}, at::kLong);
  for (int64_t i = 0; i < B; ++i) batch.ids.push_back(i);
  return batch;
}

std::vector<at::Tensor> grads(BertClassifier& model, const Batch& batch) {
  for (const auto& [name, parameter] : model.parameters()) parameter.mutable_grad().reset();
  model.loss(model.forward(batch), batch).sum.backward();
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.grad());
  return all;
}

/// The largest difference of two models' gradients, in units of each tensor's largest; key biases are
/// rounding.
double worst_difference(BertClassifier& a, BertClassifier& b, const Batch& batch) {
  const auto left = grads(a, batch), right = grads(b, batch);
  double worst = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    if (a.parameters()[i].name.ends_with("key.bias")) continue;
    worst = std::max(worst, ((left[i] - right[i]).abs().max() / right[i].abs().max()).item<double>());
  }
  return worst;
}

TEST(Bert, ParametersAreNamedLeavesInOrderOfUse) {
  const auto model = make_bert(mini_bert(), 1);
  const auto parameters = model->parameters();
  EXPECT_EQ(parameters.size(), 5 + 16 * 3 + 4u);
  EXPECT_EQ(parameters.front().name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(parameters.back().name, "classifier.bias");
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    EXPECT_TRUE(names.insert(name).second);
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad()) << name;
  }
  EXPECT_TRUE(names.contains("bert.encoder.layer.2.attention.output.LayerNorm.weight"));
  EXPECT_EQ(model->depth(), 5);
}

TEST(Bert, InitialValuesDependOnlyOnTheSeed) {
  const auto a = make_bert(mini_bert(), 7), b = make_bert(mini_bert(), 8);
  at::set_num_threads(2);
  const auto c = make_bert(mini_bert(), 7);
  at::set_num_threads(1);
  const auto parameters = a->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, value] = parameters[i];
    EXPECT_TRUE(at::equal(value, c->parameters()[i].tensor)) << name;
    const bool random = value.dim() == 2;
    EXPECT_EQ(at::equal(value, b->parameters()[i].tensor), !random) << name;
    if (!random) {
      EXPECT_EQ(value.min().item<float>(), name.ends_with("bias") ? 0 : 1) << name;
      EXPECT_EQ(value.max().item<float>(), name.ends_with("bias") ? 0 : 1) << name;
    }
  }
  BertConfig big = mini_bert();
  big.vocab_size = 5000;
  const at::Tensor words = make_bert(big, 3)->parameters()[0].tensor.detach();
  EXPECT_EQ(words[0].abs().max().item<float>(), 0);
  EXPECT_NEAR(words.slice(0, 1).mean().item<double>(), 0, 0.003);
  EXPECT_NEAR(words.slice(0, 1).std().item<double>(), 0.2, 0.003);
}

TEST(Bert, FastPathMatchesReference) {
  const auto fast = make_bert(mini_bert(), 1), plain = make_bert(mini_bert(), 1);
  plain->set_plain(true);
  const Batch batch = random_texts(4, 23);
  for (const bool training : {false, true}) {
    fast->set_mode({training, 5});
    plain->set_mode({training, 5});
    EXPECT_LT((fast->forward(batch) - plain->forward(batch)).abs().max().item<double>(), 1e-5);
    EXPECT_LT(worst_difference(*fast, *plain, batch), 3e-5);
  }
}

TEST(Bert, SkippingUnusedPositionsChangesNothing) {
  const auto part = make_bert(mini_bert(), 1), whole = make_bert(mini_bert(), 1);
  whole->set_whole_last_layer(true);
  const Batch batch = random_texts(4, 23);
  for (const bool training : {false, true}) {
    part->set_mode({training, 5});
    whole->set_mode({training, 5});
    EXPECT_LT(worst_difference(*part, *whole, batch), 3e-5);
    const LayerRange encoder = {0, part->depth() - 1};
    EXPECT_EQ(part->forward({}, batch, encoder).size(1), 1);
    EXPECT_EQ(whole->forward({}, batch, encoder).size(1), 23);
  }
  whole->set_mode({true, 6});  // other noise: the comparison can fail
  EXPECT_GT(worst_difference(*part, *whole, batch), 1e-2);
}

TEST(Bert, SlicesOfLayersComposeToTheWhole) {
  const auto model = make_bert(mini_bert(), 1);
  model->set_mode({true, 3});
  const Batch batch = random_texts(3, 11);
  const at::Tensor whole = model->forward(batch);
  for (int cut = 1; cut < model->depth(); ++cut) {
    const at::Tensor hidden = model->forward({}, batch, {0, cut});
    EXPECT_TRUE(at::equal(model->forward(hidden, batch, {cut, model->depth()}), whole)) << cut;
  }
}

TEST(Bert, DropoutDependsOnlyOnTheKey) {
  const auto model = make_bert(mini_bert(), 1);
  const Batch batch = random_texts(3, 11);
  const at::Tensor still = model->forward(batch);
  EXPECT_TRUE(at::equal(model->forward(batch), still));
  model->set_mode({true, 1});
  const auto first = grads(*model, batch), again = grads(*model, batch);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], again[i]));
  const at::Tensor noisy = model->forward(batch);
  EXPECT_FALSE(at::equal(noisy, still));
  model->set_mode({true, 2});
  EXPECT_FALSE(at::equal(model->forward(batch), noisy));
  BertConfig calm = mini_bert();
  calm.set_dropout(0);
  const auto quiet = make_bert(calm, 1);
  quiet->set_mode({true, 2});
  EXPECT_TRUE(at::equal(quiet->forward(batch), still));
}

/// The examples of `batch` at `rows`, with `padding` more positions.
Batch part_of(const Batch& batch, const std::vector<int64_t>& rows, int64_t padding) {
  Batch part;
  for (const auto& [name, field] : batch.fields) {
    const at::Tensor chosen = field.index_select(0, at::tensor(rows, at::kLong));
    part.fields[name] = chosen.dim() == 2 ? at::constant_pad_nd(chosen, {0, padding}) : chosen;
  }
  for (const int64_t row : rows) part.ids.push_back(batch.ids[static_cast<size_t>(row)]);
  return part;
}

TEST(Bert, DropoutFollowsTheExampleIntoAnyBatch) {
  for (const bool plain : {false, true}) {
    const auto model = make_bert(mini_bert(), 1);
    model->set_plain(plain);
    model->set_mode({true, 3});
    const Batch batch = random_texts(4, 11);
    const at::Tensor whole = model->forward(batch);
    const Batch alone = part_of(batch, {2}, 0), turned = part_of(batch, {3, 0, 2}, 5);
    EXPECT_LT((model->forward(alone)[0] - whole[2]).abs().max().item<double>(), 1e-5);
    const at::Tensor again = model->forward(turned);
    for (const auto& [now, before] : {std::pair{0, 3}, {1, 0}, {2, 2}})
      EXPECT_LT((again[now] - whole[before]).abs().max().item<double>(), 1e-5) << before;
    Batch renamed = alone;
    renamed.ids = {9};
    EXPECT_GT((model->forward(renamed)[0] - whole[2]).abs().max().item<double>(), 1e-2);
  }
}

TEST(Bert, EveryDropoutSiteHasItsOwnNoise) {
  const Batch batch = random_texts(3, 11);
  std::vector<at::Tensor> seen;
  for (int place = 0; place < 4; ++place) {
    BertConfig config = mini_bert();
    config.set_dropout(0);
    if (place == 0) config.hidden_dropout = 0.3;
    if (place == 1) config.attention_dropout = 0.3;
    if (place == 2) config.inner_dropout = 0.3;
    if (place == 3) config.classifier_dropout = 0.3;
    const auto model = make_bert(config, 1);
    model->set_mode({true, 4});
    seen.push_back(model->forward(batch));
    for (int other = 0; other < place; ++other)
      EXPECT_FALSE(at::equal(seen[static_cast<size_t>(other)], seen.back()));
  }
}

TEST(Bert, PaddingDoesNotReachTheLogits) {
  const auto model = make_bert(mini_bert(), 1);
  const Batch batch = random_texts(3, 11);
  Batch longer = batch;
  for (const char* name : {"input_ids", "token_type_ids", "attention_mask"}) {
    longer.fields[name] = at::constant_pad_nd(batch.at(name), {0, 9});
  }
  EXPECT_LT((model->forward(batch) - model->forward(longer)).abs().max().item<double>(), 1e-5);
  longer.fields["input_ids"].narrow(1, 11, 9).fill_(7);
  EXPECT_LT((model->forward(batch) - model->forward(longer)).abs().max().item<double>(), 1e-5);
  longer.fields["attention_mask"].fill_(1);  // the mask does it
  EXPECT_GT((model->forward(batch) - model->forward(longer)).abs().max().item<double>(), 1e-3);
}

TEST(Bert, MissingFieldsMeanOneTextWithoutPadding) {
  const auto model = make_bert(mini_bert(), 1);
  Batch batch = random_texts(3, 11);
  batch.fields["attention_mask"].fill_(1);
  batch.fields["token_type_ids"].zero_();
  const at::Tensor given = model->forward(batch);
  batch.fields.erase("attention_mask");
  batch.fields.erase("token_type_ids");
  EXPECT_TRUE(at::equal(model->forward(batch), given));
}

TEST(Bert, AccumulatesIntoExistingGradientsInPlace) {
  const auto model = make_bert(mini_bert(), 1), other = make_bert(mini_bert(), 1);
  const Batch batch = random_texts(3, 11);
  const auto fresh = grads(*other, batch);
  for (const auto& [name, parameter] : model->parameters())
    parameter.mutable_grad() = at::ones_like(parameter);
  bool by_rows = false;
  model->row_tables()[0].register_hook([&](const at::Tensor& grad) { by_rows = grad.is_sparse(); });
  std::vector<void*> places;
  for (const auto& [name, parameter] : model->parameters()) places.push_back(parameter.grad().data_ptr());
  model->loss(model->forward(batch), batch).sum.backward();
  EXPECT_TRUE(by_rows);
  for (size_t i = 0; i < places.size(); ++i) {
    const at::Tensor grad = model->parameters()[i].tensor.grad();
    EXPECT_EQ(grad.data_ptr(), places[i]);
    EXPECT_FALSE(grad.is_sparse());
    EXPECT_TRUE(at::allclose(grad - 1, fresh[i], 1e-4, 1e-6)) << model->parameters()[i].name;
  }
}

TEST(Bert, OnlyUsedRowsHaveAGradient) {
  const auto model = make_bert(mini_bert(), 1);
  const Batch batch = random_texts(3, 5);
  const at::Tensor grad = grads(*model, batch)[0];
  const auto uses = model->rows_used(batch);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_TRUE(uses[0].table.is_same(model->row_tables()[0]));
  at::Tensor rest = grad.clone();
  rest.index_fill_(0, uses[0].rows, 0);
  EXPECT_EQ(rest.abs().max().item<float>(), 0);
  EXPECT_GT(grad.abs().max().item<float>(), 0);
  EXPECT_EQ(grad[0].abs().max().item<float>(), 0);  // padding
}

TEST(Bert, TheLossIsASumOverExamples) {
  const auto model = make_bert(mini_bert(), 1);
  const Batch batch = random_texts(4, 9);
  const Loss loss = model->loss(model->forward(batch), batch);
  EXPECT_EQ(loss.count, 4);
  const at::Tensor mean = at::cross_entropy_loss(model->forward(batch), batch.at("labels"));
  EXPECT_NEAR(loss.sum.item<double>(), 4 * mean.item<double>(), 1e-5);
}

TEST(Bert, RejectsInvalidBatches) {
  const auto model = make_bert(mini_bert(), 1);
  Batch batch = random_texts(2, 5);
  batch.fields["input_ids"][1][2] = 60;
  EXPECT_THROW(model->forward(batch), DataError);
  batch.fields["input_ids"][1][2] = -1;
  EXPECT_THROW(model->forward(batch), DataError);
  batch = random_texts(2, 41);
  EXPECT_THROW(model->forward(batch), DataError);
  batch = random_texts(2, 5);
  batch.fields["token_type_ids"][0][0] = 2;
  EXPECT_THROW(model->forward(batch), DataError);
  batch = random_texts(2, 5);
  batch.fields["labels"][0] = 3;
  EXPECT_THROW(model->loss(model->forward(batch), batch), DataError);
}

TEST(Bert, TwoThreadsGiveTheSameAsOne) {
  const auto model = make_bert(mini_bert(), 1);
  model->set_mode({true, 1});
  const Batch batch = random_texts(6, 33);
  const auto one = grads(*model, batch);
  at::set_num_threads(2);
  const auto two = grads(*model, batch);
  at::set_num_threads(1);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::allclose(one[i], two[i], 1e-4, 1e-6)) << model->parameters()[i].name;
  }
}

}  // namespace
}  // namespace syncopate::nn
