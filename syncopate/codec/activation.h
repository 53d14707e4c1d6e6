#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::codec {

namespace kernels {

// Not in kernels.h: what is compiled for one instruction set shares no inline function with the others.
inline SquaredError& operator+=(SquaredError& sums, const SquaredError& more) {
  sums.error += more.error;
  sums.meant += more.meant;
  sums.change += more.change;
  return sums;
}

}  // namespace kernels

using kernels::SquaredError;

/// Rows of a matrix that lie one after the other in memory, of as many channels each. What is coded is the
/// change against `memory`, rows of the same size, where that is not null.
struct MatrixRows {
  const float* values = nullptr;
  int64_t rows = 0;
  const float* memory = nullptr;
};

/// Each channel's step, ready for the kernels.
class ChannelSteps {
 public:
  int64_t channels() const { return channels_; }
  bool finite() const { return finite_; }  ///< false: some channel held what is not finite, and decodes to it
  kernels::Channels view() const;

 private:
  friend class ActivationBits;
  int64_t channels_ = 0;
  bool finite_ = true;
  std::vector<float> arrays_;
};

/// Activations and their gradients in 1 to 8 bits, bit-packed, with a step for each channel (2 bytes, a
/// bf16). A message is the steps once and any number of pieces, each a matrix of whole rows. The same values
/// give the same bytes on every CPU, and the same bytes the same values.
///
/// Levels are whole multiples of the step, from -2^(b-1) to 2^(b-1) - 1: zero stays zero. The step covers the
/// largest magnitude; of 3 and 4 bits it is smaller where cutting off few large values makes the squared
/// error smaller. Of 1 and 2 bits levels are chosen for the least squared error: plus and minus the mean
/// magnitude; h and 3h, plus and minus, or -2h, -h, 0 and h. A channel of zeros decodes to zeros at any bits.
/// A channel with a value that is not finite decodes to not-a-number.
///
/// Stochastic rounding has no bias: levels then reach to the largest magnitude, plus and minus, and a draw
/// that is a hash of key and place decides. Of 1 and 2 bits no level is zero.
class ActivationBits {
 public:
  explicit ActivationBits(int bits, bool stochastic = false);  ///< throws ConfigError unless 1 to 8

  int bits() const { return bits_; }
  static int64_t step_bytes(int64_t channels) { return 2 * channels; }
  /// Of a piece with `count` values, steps apart.
  int64_t packed_bytes(int64_t count) const;

  /// Steps for all the pieces of a message, written to `into`.
  ChannelSteps measure(std::span<const MatrixRows> pieces, int64_t channels, std::span<uint8_t> into) const;
  /// Steps as they arrived.
  ChannelSteps read(std::span<const uint8_t> from) const;

  /// `into` has packed_bytes of the piece. What the other side will have, memory + decoded, goes into
  /// `update`, which may be the memory itself, or null.
  SquaredError encode(const MatrixRows& piece, const ChannelSteps& steps, uint64_t key,
                      std::span<uint8_t> into, float* update = nullptr) const;
  /// memory + decoded, or decoded where `memory` is null, into `into` and, unless null, into `update`.
  void decode(std::span<const uint8_t> from, const ChannelSteps& steps, std::span<float> into,
              const float* memory = nullptr, float* update = nullptr) const;

 private:
  int bits_;
  bool stochastic_;
};

}  // namespace syncopate::codec
