#include "syncopate/codec/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::codec {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;

struct Matrix {
  int64_t rows, channels;
  Floats values{};
  size_t count() const { return static_cast<size_t>(rows * channels); }
};

/// Every element differs; channels have sizes of their own.
Matrix matrix_of(int64_t rows, int64_t channels, uint64_t seed = 1) {
  Matrix made{rows, channels};
  Rng rng(mix_key(seed, rows, channels));
  made.values.resize(made.count());
  for (size_t i = 0; i < made.values.size(); ++i) {
    const auto channel = static_cast<double>(i % static_cast<size_t>(channels));
    made.values[i] = static_cast<float>(rng.normal() * std::exp(std::sin(channel)));
  }
  return made;
}

struct Message {
  Bytes head, codes;
  SquaredError error;
  Floats update;  ///< what the sender has then
  bool operator==(const Message& other) const { return head == other.head && codes == other.codes; }
};

Message encoded(const ActivationBits& bits, const Matrix& matrix, const Floats* memory = nullptr,
                uint64_t key = 7) {
  Message message{Bytes(static_cast<size_t>(ActivationBits::step_bytes(matrix.channels))),
                  Bytes(static_cast<size_t>(bits.packed_bytes(matrix.rows * matrix.channels))),
                  {},
                  {}};
  if (memory != nullptr) message.update = *memory;
  const MatrixRows rows{matrix.values.data(), matrix.rows,
                        memory != nullptr ? message.update.data() : nullptr};
  const ChannelSteps steps = bits.measure({&rows, 1}, matrix.channels, message.head);
  message.error =
      bits.encode(rows, steps, key, message.codes, memory != nullptr ? message.update.data() : nullptr);
  return message;
}

Floats decoded(const ActivationBits& bits, const Message& message, size_t count,
               const Floats* memory = nullptr) {
  Floats into(count, 123.0f);
  bits.decode(message.codes, bits.read(message.head), into, memory != nullptr ? memory->data() : nullptr);
  return into;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double error_of(const Floats& meant, const Floats& received) {
  double error = 0, size = 0;
  for (size_t i = 0; i < meant.size(); ++i) {
    error += std::pow(static_cast<double>(meant[i]) - static_cast<double>(received[i]), 2);
    size += std::pow(static_cast<double>(meant[i]), 2);
  }
  return std::sqrt(error / size);
}

void for_all_bits(const std::function<void(const ActivationBits&)>& test) {
  for (const bool stochastic : {false, true}) {
    for (int bits = 1; bits <= 8; ++bits) {
      SCOPED_TRACE(testing::Message() << bits << " bits" << (stochastic ? ", stochastic" : ""));
      test(ActivationBits(bits, stochastic));
    }
  }
}

const std::vector<std::pair<int64_t, int64_t>> kShapes{{1, 1},  {5, 3},   {9, 7},    {8, 16},  {3, 17},
                                                       {2, 64}, {13, 65}, {31, 128}, {60, 192}};

TEST(Activations, AllInstructionSetsGiveTheSameBits) {
  const auto sets = kernels::supported_kernels();
  for_all_bits([&](const ActivationBits& bits) {
    for (const auto& [rows, channels] : kShapes) {
      const Matrix matrix = matrix_of(rows, channels);
      const Floats memory = matrix_of(rows, channels, 2).values;
      std::vector<Message> plain, change;
      std::vector<Floats> back;
      for (const auto* set : sets) {
        kernels::use_kernels(*set);
        plain.push_back(encoded(bits, matrix));
        change.push_back(encoded(bits, matrix, &memory));
        back.push_back(decoded(bits, change.back(), matrix.count(), &memory));
        EXPECT_EQ(plain.back(), plain.front()) << set->name << " " << rows << " x " << channels;
        EXPECT_EQ(change.back(), change.front()) << set->name << " " << rows << " x " << channels;
        EXPECT_TRUE(same_bits(change.back().update, change.front().update)) << set->name;
        EXPECT_TRUE(same_bits(back.back(), back.front())) << set->name;
        EXPECT_EQ(change.back().error.error, change.front().error.error) << set->name;
        EXPECT_FALSE(change.back() == plain.back());
      }
    }
  });
  kernels::use_kernels(*sets.back());
}

TEST(Activations, BothSidesHaveTheSameAfterAChange) {
  for_all_bits([&](const ActivationBits& bits) {
    for (const auto& [rows, channels] : kShapes) {
      const Matrix matrix = matrix_of(rows, channels);
      const Floats memory = matrix_of(rows, channels, 2).values;
      const Message message = encoded(bits, matrix, &memory);
      Floats update = memory, into(matrix.count());
      bits.decode(message.codes, bits.read(message.head), into, update.data(), update.data());
      EXPECT_TRUE(same_bits(update, message.update));
      EXPECT_TRUE(same_bits(into, update));
      EXPECT_FALSE(same_bits(into, memory));
      EXPECT_NEAR(std::sqrt(message.error.error / message.error.meant), error_of(matrix.values, into), 1e-5);
    }
  });
}

TEST(Activations, ManyBitsAreWithinHalfAStep) {
  const Matrix matrix = matrix_of(200, 24);
  for (int bits = 5; bits <= 8; ++bits) {
    const Floats back = decoded(ActivationBits(bits), encoded(ActivationBits(bits), matrix), matrix.count());
    for (size_t c = 0; c < 24; ++c) {
      float largest = 0, off = 0;
      for (size_t i = c; i < back.size(); i += 24) {
        largest = std::max(largest, std::abs(matrix.values[i]));
        off = std::max(off, std::abs(matrix.values[i] - back[i]));
      }
      const float step = largest / (static_cast<float>(1 << (bits - 1)) - 0.5f);
      EXPECT_LE(off, 0.51f * step) << bits;
      EXPECT_GT(off, 0.3f * step) << bits;
    }
  }
}

/// The published levels: whole multiples of the largest magnitude / 2^(b-1), from -2^(b-1) to 2^(b-1) - 1.
double published_error(const Matrix& matrix, int bits) {
  const auto channels = static_cast<size_t>(matrix.channels);
  const auto half = static_cast<float>(1 << (bits - 1));
  Floats back(matrix.count());
  for (size_t c = 0; c < channels; ++c) {
    float largest = 0;
    for (size_t i = c; i < back.size(); i += channels)
      largest = std::max(largest, std::abs(matrix.values[i]));
    for (size_t i = c; i < back.size(); i += channels) {
      back[i] = std::clamp(std::round(matrix.values[i] / largest * half), -half, half - 1) * largest / half;
    }
  }
  return error_of(matrix.values, back);
}

TEST(Activations, FewBitsHaveASmallerErrorThanThePublishedLevels) {
  Matrix normal = matrix_of(1000, 32);
  Matrix sparse = normal, peaked = normal;
  for (size_t i = 0; i < sparse.values.size(); ++i) {
    if (i % 10 < 7) sparse.values[i] = 0;
    if (i / 32 == 500) peaked.values[i] *= 300;
  }
  const double best[] = {0.61, 0.35, 0.21, 0.115};  // of normally distributed values, about
  for (int bits = 1; bits <= 4; ++bits) {
    for (const Matrix* matrix : {&normal, &sparse, &peaked}) {
      const Floats back =
          decoded(ActivationBits(bits), encoded(ActivationBits(bits), *matrix), matrix->count());
      EXPECT_LT(error_of(matrix->values, back), 1) << bits;  // whatever the values: buffers come closer
      if (bits > 1) {
        EXPECT_LT(error_of(matrix->values, back), 1.02 * published_error(*matrix, bits)) << bits;
      }
    }
    const Floats back = decoded(ActivationBits(bits), encoded(ActivationBits(bits), normal), normal.count());
    EXPECT_LT(error_of(normal.values, back), best[bits - 1]);
    EXPECT_LT(error_of(normal.values, back), 0.95 * published_error(normal, bits)) << bits;
  }
}

TEST(Activations, ZerosStayZeros) {
  for_all_bits([&](const ActivationBits& bits) {
    Matrix matrix = matrix_of(20, 24);
    for (size_t i = 0; i < matrix.count(); i += 24) matrix.values[i] = 0;
    const Floats back = decoded(bits, encoded(bits, matrix), matrix.count());
    for (size_t i = 0; i < matrix.count(); i += 24) EXPECT_EQ(back[i], 0.0f);
    EXPECT_GT(std::count_if(back.begin(), back.end(), [](float x) { return x != 0; }), 24);
    const Message same = encoded(bits, matrix, &matrix.values);  // no change at all
    EXPECT_TRUE(same_bits(same.update, matrix.values));
    Floats other = matrix.values;
    other[5] += 1;
    EXPECT_FALSE(same_bits(encoded(bits, matrix, &other).update, other));
  });
}

TEST(Activations, WhatIsNotFiniteStaysVisible) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for_all_bits([&](const ActivationBits& bits) {
      Matrix matrix = matrix_of(20, 24);
      EXPECT_TRUE(bits.read(encoded(bits, matrix).head).finite());
      matrix.values[3 * 24 + 5] = bad;
      const Message message = encoded(bits, matrix);
      EXPECT_FALSE(bits.read(message.head).finite());
      const Floats back = decoded(bits, message, matrix.count());
      for (size_t i = 0; i < back.size(); ++i) EXPECT_EQ(std::isnan(back[i]), i % 24 == 5);
    });
  }
}

TEST(Activations, ValuesOfAnySizeKeepTheirDigits) {
  for (const double size : {1e-25, 1e-8, 1e7, 1e17, 1e30}) {
    for_all_bits([&](const ActivationBits& bits) {
      Matrix matrix = matrix_of(64, 16), scaled = matrix;
      for (float& x : scaled.values) x = static_cast<float>(x * size);
      const Floats back = decoded(bits, encoded(bits, scaled), matrix.count());
      const double usual = error_of(matrix.values, decoded(bits, encoded(bits, matrix), matrix.count()));
      EXPECT_LT(error_of(scaled.values, back), 1.6 * usual) << size;
    });
  }
}

TEST(Activations, StochasticRoundingHasNoBias) {
  const Matrix matrix = matrix_of(8, 16);
  constexpr int kDraws = 2000;
  for (const int bits : {1, 2, 3, 8}) {
    const auto mean_of = [&](const ActivationBits& coder) {
      std::vector<double> sums(matrix.count());
      for (uint64_t key = 0; key < kDraws; ++key) {
        const Floats back = decoded(coder, encoded(coder, matrix, nullptr, mix_key(3, key)), matrix.count());
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(back[i]) / kDraws;
      }
      return Floats(sums.begin(), sums.end());
    };
    EXPECT_LT(error_of(matrix.values, mean_of(ActivationBits(bits, true))), 2.5 / std::sqrt(kDraws)) << bits;
    if (bits < 8) {
      EXPECT_GT(error_of(matrix.values, mean_of(ActivationBits(bits))), 0.06) << bits;
    }
  }
  const ActivationBits coder(3, true);
  EXPECT_EQ(encoded(coder, matrix, nullptr, 1), encoded(coder, matrix, nullptr, 1));
  EXPECT_FALSE(encoded(coder, matrix, nullptr, 1) == encoded(coder, matrix, nullptr, 2));
}

TEST(Activations, TakesTheBitsItSaysAndStaysWithin) {
  EXPECT_EQ(ActivationBits(3).packed_bytes(128 * 768), 128 * 768 * 3 / 8);
  EXPECT_EQ(ActivationBits(1).packed_bytes(0), 0);
  for_all_bits([&](const ActivationBits& bits) {
    for (const auto& [rows, channels] : kShapes) {
      const Matrix matrix = matrix_of(rows, channels);
      const auto size = static_cast<size_t>(bits.packed_bytes(rows * channels));
      EXPECT_LE(size, static_cast<size_t>(rows * channels * bits.bits() + 7) / 8 + 16 * 9);
      Bytes head(static_cast<size_t>(2 * channels)), codes(size + 32, 0xab);
      const MatrixRows piece{matrix.values.data(), rows};
      const ChannelSteps steps = bits.measure({&piece, 1}, channels, head);
      bits.encode(piece, steps, 1, std::span(codes).first(size));
      EXPECT_TRUE(std::all_of(codes.begin() + static_cast<ptrdiff_t>(size), codes.end(),
                              [](uint8_t b) { return b == 0xab; }));
      Floats into(matrix.count() + 16, 5.0f);
      bits.decode(std::span(codes).first(size), steps, std::span(into).first(matrix.count()));
      EXPECT_TRUE(std::all_of(into.end() - 16, into.end(), [](float x) { return x == 5.0f; }));
    }
  });
  for (const int bits : {-1, 0, 9}) EXPECT_THROW(ActivationBits{bits}, ConfigError);
}

}  // namespace
}  // namespace syncopate::codec
