#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "syncopate/codec/activation.h"

namespace syncopate::parallel {

/// How rows of values themselves travel, not their change: in fp32, in fp16 or in a few bits. A message
/// begins with the steps of all its rows (few bits), then come runs of rows, one after the other.
class RowFormat {
 public:
  static RowFormat full() { return RowFormat(4, std::nullopt); }
  static RowFormat half() { return RowFormat(2, std::nullopt); }
  static RowFormat few_bits(int bits, bool stochastic = false) {
    return RowFormat(0, codec::ActivationBits(bits, stochastic));
  }

  int64_t head_bytes(int64_t channels) const {
    return bits_ ? codec::ActivationBits::step_bytes(channels) : 0;
  }
  int64_t run_bytes(int64_t count) const { return bits_ ? bits_->packed_bytes(count) : width_ * count; }

  /// `head` has head_bytes; there is at least one row.
  codec::ChannelSteps measure(std::span<const codec::MatrixRows> runs, int64_t channels,
                              std::span<uint8_t> head) const;
  codec::ChannelSteps read(std::span<const uint8_t> head, int64_t channels) const;

  /// What the other side will have goes into `received`, unless null.
  codec::SquaredError encode(std::span<const float> run, const codec::ChannelSteps& steps, uint64_t key,
                             std::span<uint8_t> into, float* received = nullptr) const;
  void decode(std::span<const uint8_t> from, const codec::ChannelSteps& steps, std::span<float> into) const;

 private:
  RowFormat(int64_t width, std::optional<codec::ActivationBits> bits) : width_(width), bits_(bits) {}
  int64_t width_;  ///< bytes of a value, unless in few bits
  std::optional<codec::ActivationBits> bits_;
};

}  // namespace syncopate::parallel
