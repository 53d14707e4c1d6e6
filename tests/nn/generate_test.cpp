#include "syncopate/nn/gpt/generate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "syncopate/base/error.h"

namespace syncopate::nn {
namespace {

/// How often each token is drawn in 20 000 tries.
std::map<int64_t, double> shares(const at::Tensor& logits, const SampleOptions& options) {
  Rng rng(7);
  std::map<int64_t, double> counts;
  for (int i = 0; i < 20000; ++i) counts[sample_next(logits, options, rng)] += 1.0 / 20000;
  return counts;
}

TEST(SampleNext, FollowsTheProbabilities) {
  const at::Tensor logits = at::tensor({0.1f, 0.5f, 0.15f, 0.25f}).log();
  auto all = shares(logits, {});
  EXPECT_NEAR(all[0], 0.1, 0.01);
  EXPECT_NEAR(all[1], 0.5, 0.015);
  EXPECT_NEAR(all[3], 0.25, 0.015);
  auto sharp = shares(logits, {.temperature = 0.5});  // squares: 0.01 0.25 0.0225 0.0625
  EXPECT_NEAR(sharp[1], 0.25 / 0.345, 0.015);
  EXPECT_EQ(shares(logits, {.temperature = 0}).size(), 1u);
  EXPECT_NEAR(shares(logits, {.temperature = 0})[1], 1, 1e-9);
  auto two = shares(logits, {.top_k = 2});
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two[3], 1.0 / 3, 0.015);
  EXPECT_EQ(shares(logits, {.top_p = 0.5}).size(), 1u);
  EXPECT_EQ(shares(logits, {.top_p = 0.51}).size(), 2u);
  EXPECT_EQ(shares(logits, {.top_p = 0.8}).size(), 3u);
}

TEST(SampleNext, RejectsInvalidOptions) {
  Rng rng(1);
  const at::Tensor logits = at::zeros({3});
  EXPECT_THROW(sample_next(logits, {.temperature = -1}, rng), ConfigError);
  EXPECT_THROW(sample_next(logits, {.top_k = -1}, rng), ConfigError);
  EXPECT_THROW(sample_next(logits, {.top_p = 0}, rng), ConfigError);
  EXPECT_THROW(sample_next(at::full({3}, NAN), {}, rng), DivergedError);
  EXPECT_EQ(sample_next(logits, {.temperature = 0}, rng), 0);
}

TEST(Generate, StaysWithinWhatWasTrained) {
  GptConfig config;
  config.vocab_size = 20;
  config.hidden = 16;
  config.layers = 1;
  config.heads = 2;
  config.ffn = 32;
  config.max_positions = 12;
  config.initializer_range = 0.5;
  const auto model = make_gpt(config, 3);
  const SampleOptions wide{.temperature = 5};
  bool beyond = false;
  for (const int64_t id : generate(*model, {1}, 60, wide, 1)) beyond = beyond || id >= 8;
  EXPECT_TRUE(beyond) << "without a limit every row of the table may be drawn";
  for (const int64_t id : generate(*model, {1}, 60, wide, 1, std::nullopt, {.words = 8})) EXPECT_LT(id, 8);
  // What lies before the window is not seen: another beginning, the same end.
  const TrainedPart four{.positions = 4};
  const auto a = generate(*model, {9, 1, 2, 3, 4}, 6, {.temperature = 0}, 1, std::nullopt, four);
  const auto b = generate(*model, {7, 1, 2, 3, 4}, 6, {.temperature = 0}, 1, std::nullopt, four);
  EXPECT_TRUE(std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end()));
}

TEST(Generate, ContinuesBeyondTheModelsPositions) {
  GptConfig config;
  config.vocab_size = 20;
  config.hidden = 16;
  config.layers = 1;
  config.heads = 2;
  config.ffn = 32;
  config.max_positions = 6;
  config.initializer_range = 0.5;
  const auto model = make_gpt(config, 3);
  model->set_mode({true, 1});  // dropout must not reach a text
  const auto greedy = generate(*model, {1, 2, 3}, 12, {.temperature = 0}, 1);
  ASSERT_EQ(greedy.size(), 15u);
  EXPECT_EQ(generate(*model, {1, 2, 3}, 12, {.temperature = 0}, 2), greedy);
  // Each token is the likeliest after the six before it.
  for (size_t at = 3; at < greedy.size(); ++at) {
    const size_t first = at > 6 ? at - 6 : 0;
    Batch batch;
    batch.fields["input_ids"] =
        at::tensor(std::vector<int64_t>(greedy.begin() + static_cast<std::ptrdiff_t>(first),
                                        greedy.begin() + static_cast<std::ptrdiff_t>(at)))
            .unsqueeze(0);
    EXPECT_EQ(model->forward(batch)[0][-1].argmax().item<int64_t>(), greedy[at]) << at;
  }
  const auto drawn = generate(*model, {1}, 12, {}, 1);
  EXPECT_EQ(generate(*model, {1}, 12, {}, 1), drawn);
  EXPECT_NE(generate(*model, {1}, 12, {}, 2), drawn);
  const auto stopped = generate(*model, {1, 2, 3}, 12, {.temperature = 0}, 1, greedy[5]);
  EXPECT_EQ(stopped.back(), greedy[5]);
  EXPECT_LE(stopped.size(), 6u);
  EXPECT_THROW(generate(*model, {}, 3, {}, 1), ConfigError);
}

}  // namespace
}  // namespace syncopate::nn
