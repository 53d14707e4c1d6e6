#include "syncopate/codec/kernels/kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "syncopate/base/rng.h"

namespace syncopate::codec::kernels {
namespace {

constexpr Format Kernels::*kFormats[] = {&Kernels::fp32, &Kernels::fp16, &Kernels::bf16,
                                         &Kernels::int8, &Kernels::int4, &Kernels::sign};

/// Random numbers of every exponent that a gradient may have, and some beyond what 16 bits hold.
std::vector<float> numbers_of(int64_t count) {
  Rng rng(mix_key(5, count));
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.normal() * std::exp(8 * rng.normal()));
  return numbers;
}

std::vector<uint8_t> packed_by(const Format& format, const std::vector<float>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size()), tail = count % format.bucket;
  std::vector<uint8_t> packed(static_cast<size_t>(count / format.bucket * format.bucket_bytes +
                                                  (tail > 0 ? format.tail_bytes(tail) : 0)));
  format.encode(numbers.data(), packed.data(), count);
  return packed;
}

TEST(CodecKernels, AllInstructionSetsGiveTheSameBits) {
  const auto sets = supported_kernels();
  for (const int64_t count : {1, 15, 100, 513, 5000, 65536 + 3}) {
    const std::vector<float> numbers = numbers_of(count);
    for (const auto format : kFormats) {
      const auto packed = packed_by(sets.front()->*format, numbers);
      std::vector<float> whole(numbers.size()), rest(numbers.size());
      (sets.front()->*format).decode(packed.data(), whole.data(), count);
      (sets.front()->*format).rest(packed.data(), numbers.data(), rest.data(), count);
      for (const Kernels* set : sets) {
        EXPECT_EQ(packed, packed_by(set->*format, numbers)) << set->name << " " << count;
        std::vector<float> mine(numbers.size());
        (set->*format).decode(packed.data(), mine.data(), count);
        EXPECT_EQ(std::memcmp(mine.data(), whole.data(), 4 * mine.size()), 0) << set->name;
        (set->*format).rest(packed.data(), numbers.data(), mine.data(), count);
        EXPECT_EQ(std::memcmp(mine.data(), rest.data(), 4 * mine.size()), 0) << set->name;
      }
    }
  }
}

TEST(CodecKernels, SixteenBitRoundingMatchesAten) {
  std::vector<float> numbers = numbers_of(100'000);
  for (uint32_t i = 0; i < 66'000; ++i) numbers.push_back(std::bit_cast<float>(i * 65'537u & 0x7fffffffu));
  // What ATen turns into infinity we keep at the largest: left out here, tested in the codec.
  std::erase_if(numbers, [](float x) { return !(std::abs(x) < 65504) && !std::isinf(x); });
  const auto count = static_cast<int64_t>(numbers.size());
  const at::Tensor tensor = at::from_blob(numbers.data(), {count}, at::kFloat);
  for (const Kernels* set : supported_kernels()) {
    for (const auto& [format, type] :
         {std::pair{&Kernels::fp16, at::kHalf}, {&Kernels::bf16, at::kBFloat16}}) {
      const auto packed = packed_by(set->*format, numbers);
      const at::Tensor theirs = tensor.to(type).contiguous();
      EXPECT_EQ(std::memcmp(packed.data(), theirs.data_ptr(), packed.size()), 0) << set->name;
      const at::Tensor back = at::empty({count});
      (set->*format).decode(packed.data(), back.data_ptr<float>(), count);
      EXPECT_TRUE(at::equal(back, theirs.to(at::kFloat))) << set->name;
    }
  }
}

TEST(CodecKernels, QuantizationMatchesAPlainLoop) {
  const std::vector<float> numbers = numbers_of(512);
  float most = 0;
  for (const float x : numbers) most = std::max(most, std::abs(x));
  const float up = 127 / most, scale = most / 127;
  for (const Kernels* set : supported_kernels()) {
    const auto packed = packed_by(set->int8, numbers);
    float kept;
    std::memcpy(&kept, packed.data(), 4);
    EXPECT_EQ(kept, scale);
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(static_cast<int8_t>(packed[4 + i]), static_cast<int8_t>(std::nearbyint(numbers[i] * up)));
    }
  }
}

TEST(CodecKernels, FindsPositionsAndNonFiniteValues) {
  for (const Kernels* set : supported_kernels()) {
    std::vector<float> numbers = numbers_of(1003);
    EXPECT_TRUE(set->finite(numbers.data(), 1003));
    std::vector<uint32_t> found(1003 + 16), expected;
    const uint32_t least = std::bit_cast<uint32_t>(2.0f);
    for (uint32_t i = 0; i < 1003; ++i) {
      if (std::abs(numbers[i]) >= 2) expected.push_back(i);
    }
    found.resize(static_cast<size_t>(set->positions_from(numbers.data(), 1003, least, found.data())));
    EXPECT_EQ(found, expected) << set->name;
    EXPECT_FALSE(expected.empty());
    for (const size_t place : {0u, 500u, 1002u}) {
      for (const float bad : {std::numeric_limits<float>::infinity(), -std::nanf("")}) {
        std::vector<float> spoilt = numbers;
        spoilt[place] = bad;
        EXPECT_FALSE(set->finite(spoilt.data(), 1003)) << set->name;
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::codec::kernels
