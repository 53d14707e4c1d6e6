#pragma once

#include "syncopate/codec/codec.h"

namespace syncopate::codec {

/// One element of each of k equal stretches, chosen by the key. The decoder knows the positions from the key,
/// so only values are sent. They are not scaled up: error feedback sends the other elements later.
class RandomK : public Codec {
 public:
  explicit RandomK(double ratio) : ratio_(ratio) {}
  int64_t packed_bytes(int64_t count) const override { return 4 * kept_of(count, ratio_); }
  void encode(std::span<const float> from, std::span<uint8_t> into, uint64_t key) const override;
  void decode(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override;
  void decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override;
  bool encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                        uint64_t key) const override;
  std::optional<CodecOptions> options() const override {
    return CodecOptions{.name = "random-k", .ratio = ratio_};
  }

 private:
  double ratio_;
};

}  // namespace syncopate::codec
