#include "syncopate/parallel/pipeline/activation_codec.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "tests/support/support.h"

namespace syncopate::parallel {
namespace {

using tensor::Batch;

constexpr int64_t kChannels = 24;

/// Texts of the lengths that their ids say; padded to the longest.
int64_t length_of(int64_t id) { return 3 + id * 7 % 11; }

Batch texts(const std::vector<int64_t>& ids, int64_t other_word = 0) {
  int64_t longest = 0;
  for (const int64_t id : ids) longest = std::max(longest, length_of(id));
  const auto rows = static_cast<int64_t>(ids.size());
  const at::Tensor words = at::zeros({rows, longest}, at::kLong),
                   mask = at::zeros({rows, longest}, at::kLong);
  Batch batch;
  batch.ids = ids;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t id = ids[static_cast<size_t>(i)];
    for (int64_t j = 0; j < length_of(id); ++j) {
      words.data_ptr<int64_t>()[i * longest + j] = id * 100 + j + other_word;
      mask.data_ptr<int64_t>()[i * longest + j] = 1;
    }
  }
  batch.fields = {{"input_ids", words}, {"attention_mask", mask}};
  return batch;
}

/// What a model makes of a batch at a time: a function of example and place, which moves a little with time.
at::Tensor hidden_of(const Batch& batch, double time, double move = 0.05) {
  const auto rows = batch.size(), longest = batch.at("input_ids").size(1);
  at::Tensor hidden = at::empty({rows, longest, kChannels});
  float* value = hidden.data_ptr<float>();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t id = batch.ids[static_cast<size_t>(i)];
    for (int64_t j = 0; j < longest; ++j) {
      for (int64_t c = 0; c < kChannels; ++c) {
        Rng start(mix_key(1, id, j, c)), drift(mix_key(2, id, j, c));
        const double size = std::exp(std::sin(static_cast<double>(c)));
        *value++ = static_cast<float>(size * (start.normal() + move * time * drift.normal()));
      }
    }
  }
  return hidden;
}

at::Tensor real_part(const at::Tensor& hidden, const Batch& batch) {
  return hidden * batch.at("attention_mask").unsqueeze(2);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); }

/// Both ends of an edge, and a message between them.
struct Edge {
  explicit Edge(const ActivationOptions& options, uint64_t run = 1, uint64_t seed = 5)
      : sender(make_activation_codec(options, {.name = "stage0.out", .run = run, .seed = seed})),
        receiver(make_activation_codec(options, {.name = "stage1.in", .run = run, .seed = seed})) {}

  at::Tensor forward(const at::Tensor& hidden, const Batch& batch) {
    const at::Tensor into = receiver->expect(hidden, batch);
    message = sender->pack(hidden, batch);
    EXPECT_EQ(into.sizes(), message.sizes());
    EXPECT_EQ(into.scalar_type(), message.scalar_type());
    return receiver->unpack(message, hidden, batch);
  }
  at::Tensor backward(const at::Tensor& gradient, const Batch& batch) {
    const at::Tensor into = sender->expect_gradient(gradient, batch);
    message = receiver->pack_gradient(gradient, batch);
    EXPECT_EQ(into.sizes(), message.sizes());
    return sender->unpack_gradient(message, gradient, batch);
  }
  at::Tensor once(const at::Tensor& hidden, const Batch& batch) const {
    const at::Tensor into = receiver->expect_once(hidden, batch), sent = sender->pack_once(hidden, batch);
    EXPECT_EQ(into.sizes(), sent.sizes());
    return receiver->unpack_once(sent, hidden, batch);
  }

  std::unique_ptr<ActivationCodec> sender, receiver;
  at::Tensor message;
};

double off(const at::Tensor& meant, const at::Tensor& received) {
  return ((received - meant).norm() / meant.norm()).item<double>();
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
  }
  return "";
}

#define EXPECT_PART(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class EveryActivationCodec : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Codecs, EveryActivationCodec, testing::ValuesIn(activation_codec_names()),
                         [](const auto& codec) {
                           std::string name = codec.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(EveryActivationCodec, CarriesTokensPixelsAndVectorsBothWays) {
  Edge edge({.codec = GetParam(), .forward_bits = 8, .backward_bits = 6});
  Batch plain;
  plain.ids = {4, 9};
  const std::vector<at::Tensor> shapes{at::randn({2, 5, 16}), at::randn({2, 16, 3, 3}),
                                       at::randn({2, 16, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast),
                                       at::randn({2, 16})};
  for (const at::Tensor& hidden : shapes) {
    Edge fresh({.codec = GetParam(), .forward_bits = 8, .backward_bits = 6});
    for (int visit = 0; visit < 2; ++visit) {
      const at::Tensor there = fresh.forward(hidden + visit, plain);
      EXPECT_EQ(there.strides(), hidden.strides());
      EXPECT_LT(off(hidden + visit, there), 0.02);
      EXPECT_GT(off(hidden + visit + 0.1, there), 0.02);
    }
    const at::Tensor back = fresh.backward(hidden, plain);
    EXPECT_EQ(back.strides(), hidden.strides());
    EXPECT_LT(off(hidden, back), 0.05);
    EXPECT_LT(off(hidden, fresh.once(hidden, plain)), 0.02);
  }
  Batch none;
  const at::Tensor empty = at::empty({0, 5, 16});
  EXPECT_EQ(edge.forward(empty, none).sizes(), empty.sizes());
  EXPECT_EQ(edge.backward(empty, none).numel(), 0);
}

TEST_P(EveryActivationCodec, SendsRealTokensAlone) {
  Edge edge({.codec = GetParam(), .forward_bits = 6, .backward_bits = 8});
  const Batch batch = texts({1, 2, 3, 4});
  const int64_t real = batch.at("attention_mask").sum().item<int64_t>();
  at::Tensor hidden = hidden_of(batch, 0);
  const bool all = GetParam() == "none";
  const auto check_real = [&](const at::Tensor& received) {
    const at::Tensor padding = received * (1 - batch.at("attention_mask")).unsqueeze(2);
    EXPECT_EQ(padding.abs().sum().item<float>() == 0, !all);
    EXPECT_LT(off(real_part(hidden, batch), real_part(received, batch)), 0.05);
  };
  check_real(edge.forward(hidden, batch));
  EXPECT_EQ(edge.sender->sums().forward.values, all ? hidden.numel() : real * kChannels);
  EXPECT_EQ(edge.sender->sums().forward.bits, 8 * static_cast<int64_t>(edge.message.nbytes()));
  check_real(edge.backward(hidden, batch));
  EXPECT_EQ(edge.receiver->sums().backward.values, all ? hidden.numel() : real * kChannels);
  if (all) return;
  // What padding holds reaches nobody, neither by itself nor by a step.
  Edge other({.codec = GetParam(), .forward_bits = 6, .backward_bits = 8});
  const at::Tensor first = edge.once(hidden, batch),
                   padded = hidden + 1000 * (1 - batch.at("attention_mask")).unsqueeze(2);
  EXPECT_TRUE(same_bits(first, other.once(padded, batch)));
  EXPECT_FALSE(same_bits(first, other.once(hidden + 1, batch)));
}

TEST_P(EveryActivationCodec, WhatIsNotFiniteArrivesAndIsForgotten) {
  Edge edge({.codec = GetParam(), .forward_bits = 4});
  const Batch batch = texts({1, 2}), first = texts({3});
  edge.forward(hidden_of(batch, 0), batch);
  for (const Batch& some : {batch, first}) {
    at::Tensor bad = hidden_of(some, 1);
    bad.data_ptr<float>()[kChannels + 2] = std::nanf("");
    EXPECT_TRUE(edge.forward(bad, some).isnan().any().item<bool>());
    EXPECT_TRUE(edge.backward(bad, some).isnan().any().item<bool>());
    EXPECT_EQ(edge.sender->digest(), edge.receiver->digest());
    for (int visit = 2; visit < 6; ++visit) {
      const at::Tensor good = hidden_of(some, visit), there = edge.forward(good, some);
      EXPECT_EQ(edge.sender->digest(), edge.receiver->digest());
      if (visit == 5) {
        EXPECT_LT(off(real_part(good, some), real_part(there, some)), 0.15);
      }
    }
  }
  EXPECT_TRUE(std::isfinite(edge.sender->sums().forward.relative_error()));
}

TEST_P(EveryActivationCodec, SavesItsSumsAndDraws) {
  const test::TempDir folder;
  const ActivationOptions options{.codec = GetParam(), .forward_bits = 3, .rounding = "stochastic"};
  Edge whole(options), resumed(options), fresh(options);
  const Batch batch = texts({1, 2});
  const at::Tensor hidden = hidden_of(batch, 1);
  whole.forward(hidden_of(batch, 0), batch);
  whole.sender->save(folder / "sender");
  whole.receiver->save(folder / "receiver");
  resumed.sender->load(folder / "sender");
  resumed.receiver->load(folder / "receiver");
  const at::Tensor there = whole.forward(hidden, batch);
  EXPECT_TRUE(same_bits(there, resumed.forward(hidden, batch)));
  EXPECT_EQ(whole.sender->sums().forward.bits, resumed.sender->sums().forward.bits);
  EXPECT_EQ(whole.sender->sums().forward.error, resumed.sender->sums().forward.error);
  const bool drawn = GetParam() == "direct" || GetParam() == "ac-sgd";
  EXPECT_EQ(same_bits(there, fresh.forward(hidden, batch)), !drawn);
}

TEST(ActivationCodec, NoneSendsTheTensorItself) {
  Edge edge({});
  Batch plain;
  plain.ids = {4, 9};
  const at::Tensor tokens = at::randn({2, 5, 16}),
                   pixels = at::randn({2, 16, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const at::Tensor& hidden : {tokens, pixels}) {
    const at::Tensor there = edge.forward(hidden, plain);
    EXPECT_EQ(there.data_ptr(), hidden.data_ptr());
    EXPECT_TRUE(same_bits(there, hidden));
    EXPECT_TRUE(edge.message.is_contiguous());
  }
  EXPECT_EQ(edge.sender->sums().forward.bits_per_value(), 32);
}

TEST(ActivationCodec, DirectTakesItsBits) {
  Edge edge({.codec = "direct", .forward_bits = 2, .backward_bits = 6});
  Batch plain;
  plain.ids = {1, 2, 3, 4};
  const at::Tensor hidden = at::randn({4, 64, 128});
  edge.forward(hidden, plain);
  edge.backward(hidden, plain);
  const ActivationTraffic forward = edge.sender->sums().forward, backward = edge.receiver->sums().backward;
  EXPECT_DOUBLE_EQ(forward.bits_per_value(), 2 + 16.0 / 256);
  EXPECT_DOUBLE_EQ(backward.bits_per_value(), 6 + 16.0 / 256);
  EXPECT_NEAR(forward.relative_error(), 0.345, 0.02);
  EXPECT_EQ(edge.receiver->sums().forward.values, 0);
}

TEST(AcSgd, FirstVisitIsUncompressed) {
  for (const int bits : {1, 2, 8}) {
    Edge edge({.codec = "ac-sgd", .forward_bits = bits});
    const Batch batch = texts({1, 2, 3});
    const at::Tensor first = hidden_of(batch, 0), second = hidden_of(batch, 1);
    EXPECT_TRUE(same_bits(edge.forward(first, batch), real_part(first, batch)));
    EXPECT_FALSE(same_bits(edge.forward(second, batch), real_part(second, batch)));
    EXPECT_EQ(edge.sender->sums().first_visits, 3);
    const Batch twice = texts({4, 5, 4});
    EXPECT_TRUE(same_bits(edge.forward(hidden_of(twice, 0), twice), real_part(hidden_of(twice, 0), twice)));
    EXPECT_EQ(edge.receiver->sums().later_visits, 3);
  }
  for (const char* form : {"half", "int8"}) {
    Edge edge({.codec = "ac-sgd", .first_visit = std::string(form)});
    const Batch batch = texts({1, 2, 3});
    const at::Tensor first = real_part(hidden_of(batch, 0), batch), there = edge.forward(first, batch);
    EXPECT_FALSE(same_bits(there, first));
    EXPECT_LT(off(first, there), 0.01);
  }
}

TEST(AcSgd, WithoutAChangeNothingIsLost) {
  for (const char* rounding : {"nearest", "stochastic"}) {
    for (int bits = 1; bits <= 8; ++bits) {
      Edge full({.codec = "ac-sgd", .forward_bits = bits, .rounding = std::string(rounding)});
      Edge foil({.codec = "ac-sgd",
                 .forward_bits = bits,
                 .rounding = std::string(rounding),
                 .first_visit = std::string("int8")});
      const Batch batch = texts({1, 2, 3});
      const at::Tensor hidden = real_part(hidden_of(batch, 0), batch);
      for (int visit = 0; visit < 3; ++visit) {
        EXPECT_TRUE(same_bits(full.forward(hidden, batch), hidden)) << bits;
        EXPECT_FALSE(same_bits(foil.forward(hidden, batch), hidden)) << bits;
      }
      EXPECT_EQ(full.sender->sums().forward.error, 0);
    }
  }
}

/// Batches that mix first and later visits, examples in other companies, and one that a batch holds twice.
const std::vector<std::vector<int64_t>> kVisits{{1, 2, 3}, {4, 1, 5}, {6, 6, 2},
                                                {3, 6, 4}, {5, 1, 1}, {2, 7, 3}};

TEST(AcSgd, BuffersAreEqualAfterEveryMessage) {
  for (const char* store : {"fp32", "fp16", "int8", "int4"}) {
    for (const char* rounding : {"nearest", "stochastic"}) {
      for (const char* first : {"full", "half", "int8"}) {
        const ActivationOptions options{.codec = "ac-sgd",
                                        .forward_bits = 3,
                                        .rounding = std::string(rounding),
                                        .first_visit = std::string(first),
                                        .store = std::string(store)};
        Edge edge(options), missed(options);
        uint64_t last = 0;
        for (size_t i = 0; i < kVisits.size(); ++i) {
          const Batch batch = texts(kVisits[i]);
          const at::Tensor hidden = hidden_of(batch, static_cast<double>(i));
          const at::Tensor there = edge.forward(hidden, batch);
          EXPECT_EQ(edge.sender->digest(), edge.receiver->digest())
              << store << " " << rounding << " " << first;
          EXPECT_NE(edge.sender->digest(), last);
          EXPECT_LT(off(real_part(hidden, batch), there), 0.3) << store << " " << rounding << " " << first;
          last = edge.sender->digest();
          if (i != 4) missed.forward(hidden, batch);
        }
        EXPECT_NE(missed.sender->digest(), edge.sender->digest());
      }
    }
  }
}

TEST(AcSgd, ReceivesMayBePostedAhead) {
  const ActivationOptions options{.codec = "ac-sgd", .forward_bits = 2};
  Edge ahead(options), one_by_one(options);
  std::vector<Batch> batches;
  for (const auto& ids : kVisits) batches.push_back(texts(ids));
  for (const Batch& batch : batches) ahead.receiver->expect(hidden_of(batch, 0), batch);
  for (size_t i = 0; i < batches.size(); ++i) {
    const at::Tensor hidden = hidden_of(batches[i], static_cast<double>(i));
    const at::Tensor message = ahead.sender->pack(hidden, batches[i]);
    EXPECT_TRUE(same_bits(ahead.receiver->unpack(message, hidden, batches[i]),
                          one_by_one.forward(hidden, batches[i])));
  }
  EXPECT_EQ(ahead.receiver->digest(), one_by_one.sender->digest());
  ahead.receiver->expect(hidden_of(batches[0], 0), batches[0]);
  EXPECT_THROW(ahead.receiver->unpack(at::empty({0}, at::kByte), hidden_of(batches[1], 0), batches[1]),
               InternalError);
}

TEST(AcSgd, ErrorIsAThirdOfDirectsWhereActivationsMoveLittle) {
  const Batch batch = texts({1, 2, 3, 4, 5, 6, 7, 8});
  for (const int bits : {2, 3, 4}) {
    Edge change({.codec = "ac-sgd", .forward_bits = bits}), direct({.codec = "direct", .forward_bits = bits});
    Edge far({.codec = "ac-sgd", .forward_bits = bits});
    for (int visit = 0; visit < 8; ++visit) {
      const at::Tensor hidden = hidden_of(batch, visit);
      change.forward(hidden, batch);
      direct.forward(hidden, batch);
      far.forward(hidden_of(batch, visit % 2 == 0 ? visit : -visit, 2), batch);  // moves more than it is long
    }
    const double rival = direct.sender->sums().forward.relative_error();
    const ActivationTraffic near = change.sender->sums().changes, away = far.sender->sums().changes;
    EXPECT_LT(near.relative_error(), rival / 3) << bits;
    EXPECT_GT(away.relative_error(), rival / 3) << bits;
    EXPECT_LT(near.relative_change(), 0.25);
    EXPECT_GT(away.relative_change(), 0.5);
    EXPECT_LT(near.bits_per_value(), change.sender->sums().forward.bits_per_value());
  }
}

TEST(AcSgd, AFileIsAsGoodAsMemory) {
  const test::TempDir folder;
  ActivationOptions options{
      .codec = "ac-sgd", .forward_bits = 2, .buffer_gib = 0.001, .folder = folder / "buffers"};
  Edge memory(options);
  options.buffer = "file";
  {
    Edge file(options);
    EXPECT_TRUE(std::filesystem::exists(folder / "buffers/stage1.in.activations"));
    for (size_t i = 0; i < kVisits.size(); ++i) {
      const Batch batch = texts(kVisits[i]);
      const at::Tensor hidden = hidden_of(batch, static_cast<double>(i));
      file.sender->prefetch(batch.ids);
      EXPECT_TRUE(same_bits(file.forward(hidden, batch), memory.forward(hidden, batch)));
      EXPECT_EQ(file.receiver->digest(), memory.receiver->digest());
    }
    std::filesystem::copy_file(folder / "buffers/stage1.in.activations", folder / "left");
    // Another run, and a second one of this name.
    EXPECT_PART(error_of([&] { Edge second(options); }), "in use by another run");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "buffers/stage1.in.activations"));
  test::write_text(folder / "buffers/stage0.out.activations", "SYNCACT1 of somebody else");
  const std::string other = error_of([&] { Edge second(options); });
  EXPECT_PART(other, "3: ");
  EXPECT_PART(other, "belongs to another run");
  EXPECT_EQ(test::read_text(folder / "buffers/stage0.out.activations"), "SYNCACT1 of somebody else");
  std::filesystem::remove(folder / "buffers/stage0.out.activations");
  // What a killed run left is this run's to use, and nobody else's.
  std::filesystem::rename(folder / "left", folder / "buffers/stage1.in.activations");
  EXPECT_PART(error_of([&] { Edge second(options, 2); }), "belongs to another run");
  Edge again(options);
  again.forward(hidden_of(texts({1}), 0), texts({1}));
  EXPECT_EQ(again.sender->digest(), again.receiver->digest());
}

TEST(AcSgd, ResumesBitForBit) {
  for (const char* buffer : {"memory", "file"}) {
    const test::TempDir folder, other;
    ActivationOptions options{.codec = "ac-sgd",
                              .forward_bits = 3,
                              .rounding = "stochastic",
                              .buffer = std::string(buffer),
                              .store = "fp16",
                              .folder = folder.path()};
    Edge whole(options);
    for (int i = 0; i < 3; ++i) whole.forward(hidden_of(texts(kVisits[i]), i), texts(kVisits[i]));
    whole.backward(hidden_of(texts(kVisits[0]), 0), texts(kVisits[0]));
    whole.sender->save(folder / "sender");
    whole.receiver->save(folder / "receiver");
    options.folder = other.path();
    Edge resumed(options),
        fresh({.codec = "ac-sgd", .forward_bits = 3, .rounding = "stochastic", .store = "fp16"});
    resumed.forward(hidden_of(texts({9, 10}), 0), texts({9, 10}));  // gone with what is loaded
    resumed.sender->load(folder / "sender");
    resumed.receiver->load(folder / "receiver");
    EXPECT_EQ(resumed.sender->digest(), whole.sender->digest());
    for (int i = 3; i < 6; ++i) {
      const Batch batch = texts(kVisits[i]);
      const at::Tensor hidden = hidden_of(batch, i), there = whole.forward(hidden, batch);
      EXPECT_TRUE(same_bits(resumed.forward(hidden, batch), there));
      EXPECT_TRUE(same_bits(resumed.message, whole.message));
      EXPECT_FALSE(same_bits(fresh.forward(hidden, batch), there));
      EXPECT_TRUE(same_bits(resumed.backward(hidden, batch), whole.backward(hidden, batch)));
    }
    EXPECT_EQ(resumed.receiver->digest(), whole.sender->digest());
    EXPECT_EQ(resumed.sender->sums().forward.bits, whole.sender->sums().forward.bits);
    EXPECT_EQ(resumed.sender->sums().forward.error, whole.sender->sums().forward.error);
    EXPECT_EQ(resumed.sender->sums().first_visits, whole.sender->sums().first_visits);
    EXPECT_EQ(resumed.sender->sums().examples_kept, 7);
  }
}

TEST(AcSgd, RefusesFilesThatAreDamagedOrNotItsOwn) {
  const test::TempDir folder;
  const ActivationOptions options{.codec = "ac-sgd"};
  Edge edge(options, 1);
  edge.forward(hidden_of(texts({1}), 0), texts({1}));
  edge.sender->save(folder / "saved");
  const std::string bytes = test::read_text(folder / "saved");
  const uint64_t before = edge.receiver->digest();
  for (size_t at = 0; at < bytes.size(); at += at < 600 ? 7 : 131) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    test::write_text(folder / "damaged", damaged);
    EXPECT_PART(error_of([&] { edge.receiver->load(folder / "damaged"); }), "is damaged");
  }
  for (const size_t size : {size_t{0}, size_t{9}, bytes.size() - 1}) {
    test::write_text(folder / "damaged", bytes.substr(0, size));
    EXPECT_PART(error_of([&] { edge.receiver->load(folder / "damaged"); }), "3: ");
  }
  EXPECT_EQ(edge.receiver->digest(), before);
  EXPECT_PART(error_of([&] { Edge(options, 2).sender->load(folder / "saved"); }), "belongs to another run");
  EXPECT_PART(error_of([&] { Edge({.codec = "ac-sgd", .store = "int8"}).sender->load(folder / "saved"); }),
              "buffers in fp32");
  EXPECT_PART(error_of([&] { Edge({.codec = "direct"}).sender->load(folder / "saved"); }),
              "activation codec ac-sgd");
  EXPECT_PART(error_of([&] { Edge({.codec = "ac-sgd", .buffer_gib = 1e-7}).sender->load(folder / "saved"); }),
              "2: activation.buffer_gib");
  EXPECT_EQ(error_of([&] { Edge(options, 1).sender->load(folder / "saved"); }), "");
}

TEST(AcSgd, BeyondItsBudgetSendsAsOnAFirstVisit) {
  const Batch batch = texts({1, 2}), more = texts({3, 4});
  const auto bytes = static_cast<double>((length_of(1) + length_of(2)) * kChannels * 4 + 300);
  const ActivationOptions options{.codec = "ac-sgd", .forward_bits = 2, .buffer_gib = bytes * 0x1p-30};
  Edge edge(options);
  for (int visit = 0; visit < 3; ++visit) {
    const at::Tensor one = hidden_of(batch, visit), two = hidden_of(texts({1, 8}), visit);
    EXPECT_EQ(same_bits(edge.forward(one, batch), real_part(one, batch)), visit == 0);
    const at::Tensor there = edge.forward(two, texts({1, 8}));
    EXPECT_TRUE(same_bits(there[1], real_part(two, texts({1, 8}))[1]));  // always, for there is no room
    EXPECT_EQ(edge.sender->digest(), edge.receiver->digest());
  }
  const ActivationSums sums = edge.sender->sums();
  EXPECT_EQ(sums.beyond_budget, 3);
  EXPECT_EQ(sums.examples_beyond, 1);
  EXPECT_EQ(sums.examples_kept, 2);
  EXPECT_LE(static_cast<double>(sums.buffer_bytes), bytes);
  EXPECT_EQ(edge.receiver->sums().beyond_budget, 3);
  const std::string small =
      error_of([&] { Edge({.codec = "ac-sgd", .buffer_gib = 1e-6}).forward(hidden_of(batch, 0), batch); });
  EXPECT_PART(small,
              "2: activation.buffer_gib is 1e-06, but the activations of one micro-batch of 2 examples take");
}

TEST(AcSgd, AnIdMustStayTheSameText) {
  Edge edge({.codec = "ac-sgd"}), drawn({.codec = "ac-sgd", .same_content = false});
  const Batch batch = texts({1, 2}), other = texts({1, 2}, 1);
  for (Edge* each : {&edge, &drawn}) each->forward(hidden_of(batch, 0), batch);
  // Padding is no part of a text.
  EXPECT_EQ(error_of([&] { edge.forward(hidden_of(texts({1, 4}), 1), texts({1, 4})); }), "");
  const std::string error = error_of([&] { edge.sender->pack(hidden_of(other, 1), other); });
  EXPECT_PART(error, "3: example 1 came back with another content");
  EXPECT_EQ(error_of([&] { drawn.forward(hidden_of(other, 1), other); }), "");
  Batch longer = texts({4, 2});
  longer.ids = {1, 2};
  EXPECT_PART(error_of([&] { drawn.sender->pack(hidden_of(longer, 1), longer); }), "another content");
  // So are pixels.
  Batch images;
  images.ids = {1, 2};
  images.fields = {{"images", at::randn({2, 3, 4, 4})}};
  Edge pixels({.codec = "ac-sgd"});
  const at::Tensor hidden = at::randn({2, 8, 2, 2});
  pixels.forward(hidden, images);
  EXPECT_EQ(error_of([&] { pixels.forward(hidden, images); }), "");
  images.fields["images"] = at::randn({2, 3, 4, 4});
  EXPECT_PART(error_of([&] { pixels.sender->pack(hidden, images); }), "another content");
}

TEST(AcSgd, EvaluationRemembersNothing) {
  Edge edge({.codec = "ac-sgd", .forward_bits = 2, .first_visit = "half"});
  const Batch batch = texts({1, 2});
  edge.forward(hidden_of(batch, 0), batch);
  const uint64_t before = edge.receiver->digest();
  const int64_t bits = edge.sender->sums().forward.bits;
  const at::Tensor hidden = hidden_of(batch, 1);
  EXPECT_LT(off(real_part(hidden, batch), edge.once(hidden, batch)), 1e-3);
  EXPECT_EQ(edge.receiver->digest(), before);
  EXPECT_EQ(edge.sender->sums().forward.bits, bits);
  edge.forward(hidden, batch);
  EXPECT_NE(edge.receiver->digest(), before);
}

TEST(ActivationCodec, RefusesWhatItCannotDo) {
  const auto error = [](const ActivationOptions& options) {
    return error_of([&] { make_activation_codec(options); });
  };
  EXPECT_PART(error({.codec = "acsgd"}), "2: unknown activation codec \"acsgd\"");
  EXPECT_PART(error({.codec = "direct", .forward_bits = 0}), "2: forward_bits must be from 1 to 8, got 0");
  EXPECT_PART(error({.codec = "direct", .backward_bits = 9}), "2: backward_bits must be from 1 to 8, got 9");
  EXPECT_PART(error({.codec = "direct", .rounding = "up"}), "2: unknown rounding \"up\"");
  EXPECT_PART(error({.codec = "ac-sgd", .first_visit = "none"}), "2: unknown first_visit");
  EXPECT_PART(error({.codec = "ac-sgd", .buffer = "disk"}), "2: unknown buffer");
  EXPECT_PART(error({.codec = "ac-sgd", .store = "int2"}), "2: unknown store");
  EXPECT_PART(error({.codec = "ac-sgd", .buffer_gib = 0}), "2: buffer_gib must be above 0");
  EXPECT_EQ(error({.codec = "ac-sgd"}), "");
}

}  // namespace
}  // namespace syncopate::parallel
