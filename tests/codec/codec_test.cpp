#include "syncopate/codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/codec/top_k.h"

namespace syncopate::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr uint64_t kKey = 99;

using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;

Floats gradient(int64_t count, uint64_t seed = 1) {
  Rng rng(mix_key(seed, count));
  Floats numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(1e-3 * rng.normal() * std::exp(2 * rng.normal()));
  return numbers;
}

Bytes encoded(const Codec& codec, const Floats& numbers, uint64_t key = kKey) {
  Bytes packed(static_cast<size_t>(codec.packed_bytes(static_cast<int64_t>(numbers.size()))));
  codec.encode(numbers, packed, key);
  return packed;
}

Floats decoded(const Codec& codec, const Bytes& packed, size_t count, uint64_t key = kKey) {
  Floats numbers(count, 123.0f);  // what was there must not matter
  codec.decode(packed, numbers, key);
  return numbers;
}

bool all_finite(const Floats& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

bool same_bits(const Floats& a, const Floats& b) {
  const auto same = [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// What every codec keeps, over sizes around the ends of buckets.
class EveryCodec : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Codec> codec_ = make_codec({.name = GetParam(), .ratio = 0.1});
  const std::vector<int64_t> sizes_{0,   1,   2,   7,   15,  16,   17,   63,   64,   65,   127,   128,
                                    129, 511, 512, 513, 777, 1023, 4095, 4096, 4097, 9001, 70001, 131072};
};
INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec, testing::ValuesIn(element_codec_names()), [](const auto& codec) {
  std::string name = codec.param;
  std::erase(name, '-');
  return name;
});

TEST_P(EveryCodec, ErrorIsWithinItsBound) {
  for (const int64_t size : sizes_) {
    const Floats numbers = gradient(size);
    const Floats back = decoded(*codec_, encoded(*codec_, numbers), numbers.size());
    const int64_t bucket = GetParam() == "int4" ? 128 : 512;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t begin = i / bucket * bucket, end = std::min(numbers.size(), begin + bucket);
      float most = 0, sum = 0;
      for (size_t j = begin; j < end; ++j) {
        most = std::max(most, std::abs(numbers[j]));
        sum += std::abs(numbers[j]);
      }
      const float error = std::abs(back[i] - numbers[i]);
      if (GetParam() == "none") {
        ASSERT_EQ(back[i], numbers[i]);
      } else if (GetParam() == "fp16") {
        ASSERT_LE(error, std::max(std::abs(numbers[i]) * 0x1p-11f, 0x1p-25f));
      } else if (GetParam() == "bf16") {
        ASSERT_LE(error, std::abs(numbers[i]) * 0x1p-8f);
      } else if (GetParam() == "int8" || GetParam() == "int4") {
        ASSERT_LE(error, most / (GetParam() == "int8" ? 127 : 7) * 0.50001f) << size << " " << i;
      } else if (GetParam() == "sign") {
        ASSERT_EQ(std::signbit(back[i]), std::signbit(numbers[i]));
        ASSERT_NEAR(std::abs(back[i]), sum / static_cast<float>(end - begin), 1e-5f * most);
      } else {
        ASSERT_TRUE(back[i] == 0 || back[i] == numbers[i]);
      }
    }
    if (GetParam() == "top-k" || GetParam() == "random-k") {
      EXPECT_EQ(std::count_if(back.begin(), back.end(), [](float x) { return x != 0; }), kept_of(size, 0.1));
    }
  }
}

TEST_P(EveryCodec, EncodingIsDeterministicAndDependsOnTheInput) {
  for (const int64_t size : sizes_) {
    const Bytes packed = encoded(*codec_, gradient(size));
    EXPECT_EQ(packed, encoded(*codec_, gradient(size)));
    if (size > 0) {
      EXPECT_NE(packed, encoded(*codec_, gradient(size, 2)));
    }
  }
}

TEST_P(EveryCodec, StaysWithinItsBuffer) {
  for (const int64_t size : sizes_) {
    const Floats numbers = gradient(size);
    const auto bytes = static_cast<size_t>(codec_->packed_bytes(size));
    Bytes packed(bytes + 64, 0xab);
    codec_->encode(numbers, std::span(packed).first(bytes), kKey);
    EXPECT_TRUE(std::all_of(packed.begin() + static_cast<ptrdiff_t>(bytes), packed.end(),
                            [](uint8_t b) { return b == 0xab; }));
    Floats into(numbers.size() + 16, 5.0f);
    codec_->decode(std::span<const uint8_t>(packed).first(bytes), std::span(into).first(numbers.size()),
                   kKey);
    EXPECT_TRUE(
        std::all_of(into.begin() + static_cast<ptrdiff_t>(size), into.end(), [](float x) { return x == 5; }));
  }
}

TEST_P(EveryCodec, AddsTheDecodedValues) {
  for (const int64_t size : sizes_) {
    const Bytes packed = encoded(*codec_, gradient(size));
    Floats sum = gradient(size, 3), expected = sum;
    const Floats back = decoded(*codec_, packed, sum.size());
    for (size_t i = 0; i < sum.size(); ++i) expected[i] += back[i];
    codec_->decode_add(packed, sum, kKey);
    EXPECT_TRUE(same_bits(sum, expected));
  }
}

TEST_P(EveryCodec, DecodedPlusResidualEqualsInput) {
  for (const int64_t size : sizes_) {
    const Floats numbers = gradient(size), before = gradient(size, 4);
    Floats from = numbers, rest = before;
    Bytes packed(static_cast<size_t>(codec_->packed_bytes(size)));
    EXPECT_TRUE(codec_->encode_with_rest(from, rest, packed, kKey));
    Floats whole = numbers;
    for (size_t i = 0; i < whole.size(); ++i) whole[i] += before[i];
    EXPECT_TRUE(same_bits(from, whole));
    EXPECT_EQ(packed, encoded(*codec_, whole));
    const Floats sent = decoded(*codec_, packed, whole.size());
    float most = 0;
    for (const float x : whole) most = std::max(most, std::abs(x));
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(rest[i], whole[i] - sent[i]);
      ASSERT_LE(std::abs(sent[i] + rest[i] - whole[i]), 0x1p-23f * most);
    }
    const bool exact = GetParam() == "none" || (size == 1 && GetParam() != "bf16" && GetParam() != "fp16");
    if (size > 0 && !exact) {
      EXPECT_NE(sent, whole);
    }  // the rest is not nothing
  }
}

TEST_P(EveryCodec, SendsResidualsEventually) {
  // The same gradient again and again: what arrived tends to it, which without feedback it does not.
  const Floats numbers = gradient(3000);
  Floats fed(numbers.size()), rest(numbers.size());
  constexpr int kTimes = 400;
  double alone = 0, with = 0, size = 0;
  Floats plain(numbers.size());
  for (int t = 0; t < kTimes; ++t) {
    Floats from = numbers;
    Bytes packed(static_cast<size_t>(codec_->packed_bytes(3000)));
    codec_->encode_with_rest(from, rest, packed, mix_key(kKey, t));
    codec_->decode_add(packed, fed, mix_key(kKey, t));
    codec_->decode_add(encoded(*codec_, numbers), plain, kKey);
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    with += std::pow(fed[i] / kTimes - numbers[i], 2);
    alone += std::pow(plain[i] / kTimes - numbers[i], 2);
    size += std::pow(numbers[i], 2);
  }
  EXPECT_LT(with, 0.15 * size);
  if (GetParam() != "none") {
    EXPECT_LT(with, 0.7 * alone);
  }
}

TEST_P(EveryCodec, ReportsNonFiniteInputAndKeepsItsResidual) {
  for (const float bad : {kNone, kInfinity, -kInfinity}) {
    for (const int64_t size : sizes_) {
      if (size == 0) continue;
      for (const int64_t place : {int64_t{0}, size / 2, size - 1}) {
        Floats numbers = gradient(size);
        numbers[static_cast<size_t>(place)] = bad;
        EXPECT_FALSE(all_finite(decoded(*codec_, encoded(*codec_, numbers), numbers.size())));
        const Floats before = gradient(size, 4);
        Floats rest = before;
        Bytes packed(static_cast<size_t>(codec_->packed_bytes(size)));
        EXPECT_FALSE(codec_->encode_with_rest(numbers, rest, packed, kKey));
        EXPECT_TRUE(same_bits(rest, before));
        EXPECT_FALSE(all_finite(decoded(*codec_, packed, numbers.size())));
      }
    }
  }
}

TEST_P(EveryCodec, ExtremeValuesStayFinite) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const Floats& kinds : {Floats{kMost, -kMost}, Floats{0.0f, -0.0f}, Floats{1e-45f, -1e-40f, 1e-38f},
                              Floats{kMost, 1e-45f, 0, 65504, 65520, -7e4f, 1}}) {
    Floats numbers(1500);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = kinds[i % kinds.size()];
    EXPECT_TRUE(all_finite(decoded(*codec_, encoded(*codec_, numbers), numbers.size())));
    Floats rest(numbers.size());
    Bytes packed(static_cast<size_t>(codec_->packed_bytes(1500)));
    EXPECT_TRUE(codec_->encode_with_rest(numbers, rest, packed, kKey));
    EXPECT_TRUE(all_finite(rest));
    // A rest so large that the sum overflows is told of, and does not become the next rest.
    Floats again(1500, kMost), large(1500, kMost);
    codec_->encode_with_rest(again, large, packed, kKey);
    EXPECT_TRUE(all_finite(large));
    EXPECT_FALSE(all_finite(decoded(*codec_, packed, 1500)));
  }
}

TEST_P(EveryCodec, RejectsBuffersOfTheWrongSize) {
  const Floats numbers = gradient(100);
  Bytes packed(static_cast<size_t>(codec_->packed_bytes(100)) + 1);
  EXPECT_THROW(codec_->encode(numbers, packed, kKey), InternalError);
  Floats into(100);
  EXPECT_THROW(codec_->decode(packed, into, kKey), InternalError);
}

TEST(Codecs, EncodedSizesMatchTheFormula) {
  const auto bytes = [](const char* name, int64_t count, double ratio = 0.01) {
    return make_codec({.name = name, .ratio = ratio})->packed_bytes(count);
  };
  EXPECT_EQ(bytes("none", 1000), 4000);
  EXPECT_EQ(bytes("fp16", 1001), 2002);
  EXPECT_EQ(bytes("bf16", 1), 2);
  EXPECT_EQ(bytes("int8", 1024), 2 * 516);
  EXPECT_EQ(bytes("int8", 1025), 2 * 516 + 5);
  EXPECT_EQ(bytes("int4", 256), 2 * 68);
  EXPECT_EQ(bytes("int4", 257), 2 * 68 + 5);
  EXPECT_EQ(bytes("sign", 1024), 2 * 68);
  EXPECT_EQ(bytes("sign", 1033), 2 * 68 + 4 + 2);
  EXPECT_EQ(bytes("top-k", 100'000), 2 * 4 + 1000 * 6);
  EXPECT_EQ(bytes("top-k", 3), 4 + 6);
  EXPECT_EQ(bytes("random-k", 100'000), 4000);
  for (const std::string& name : element_codec_names()) EXPECT_EQ(bytes(name.c_str(), 0), 0) << name;
}

TEST(Codecs, KnowWhatTheyWereMadeOf) {
  for (const std::string& name : element_codec_names()) {
    const auto options = make_codec({.name = name, .ratio = 0.2})->options();
    ASSERT_TRUE(options.has_value()) << name;
    EXPECT_EQ(options->name, name);
    if (name == "top-k" || name == "random-k") {
      EXPECT_EQ(options->ratio, 0.2);
    }
  }
}

TEST(Codecs, RejectInvalidOptions) {
  EXPECT_THROW(make_codec({.name = "int7"}), ConfigError);
  for (const double ratio : {0.0, -1.0, 1.01, std::nan("")}) {
    EXPECT_THROW(make_codec({.name = "top-k", .ratio = ratio}), ConfigError);
  }
}

TEST(TopK, SelectsTheSameElementsAsSorting) {
  for (const int64_t size : {1, 10, 1000, 70'000, 200'000}) {
    for (const double ratio : {1e-4, 0.01, 0.3, 1.0}) {
      for (const bool ties : {false, true}) {
        Floats numbers = gradient(size);
        if (ties) {
          for (float& x : numbers) x = std::round(x * 1e3f);
        }
        std::vector<uint32_t> order(numbers.size());
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return std::abs(numbers[a]) > std::abs(numbers[b]); });
        order.resize(static_cast<size_t>(kept_of(size, ratio)));
        std::sort(order.begin(), order.end());
        EXPECT_EQ(largest_positions(numbers, kept_of(size, ratio)), order) << size << " " << ratio;
      }
    }
  }
}

TEST(TopK, RejectsIndicesBeyondTheEnd) {
  const auto codec = make_codec({.name = "top-k", .ratio = 0.5});
  const Floats numbers = gradient(10);
  Floats into(10);
  Bytes packed = encoded(*codec, numbers);
  packed[4] = 10;  // the first place
  EXPECT_THROW(codec->decode(packed, into), CommError);
  packed = encoded(*codec, numbers);
  packed[0] = 6;  // the count
  EXPECT_THROW(codec->decode(packed, into), CommError);
}

TEST(RandomK, KeysSelectDifferentElementsAndEventuallyAll) {
  const auto codec = make_codec({.name = "random-k", .ratio = 0.05});
  const Floats ones(1003, 1.0f);
  const Floats first = decoded(*codec, encoded(*codec, ones, 1), ones.size(), 1);
  EXPECT_NE(first, decoded(*codec, encoded(*codec, ones, 2), ones.size(), 2));
  Floats picked(ones.size());
  for (uint64_t key = 0; key < 2000; ++key) codec->decode_add(encoded(*codec, ones, key), picked, key);
  for (const float times : picked) {  // 100 each, give or take
    EXPECT_GT(times, 50);
    EXPECT_LT(times, 160);
  }
}

}  // namespace
}  // namespace syncopate::codec
