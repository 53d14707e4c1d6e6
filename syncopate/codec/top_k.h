#pragma once

#include "syncopate/codec/codec.h"

namespace syncopate::codec {

/// The k elements of largest magnitude, of equal ones the first; exact. Packed: the number of elements picked
/// in each stretch of 65,536 (4 bytes), their places in it (2 bytes each), their values (4 bytes each).
class TopK : public Codec {
 public:
  explicit TopK(double ratio) : ratio_(ratio) {}
  int64_t packed_bytes(int64_t count) const override;
  void encode(std::span<const float> from, std::span<uint8_t> into, uint64_t key) const override;
  void decode(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override;
  void decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override;
  bool encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                        uint64_t key) const override;
  std::optional<CodecOptions> options() const override {
    return CodecOptions{.name = "top-k", .ratio = ratio_};
  }

 private:
  double ratio_;
};

/// Positions of the `kept` largest magnitudes in rising order.
std::vector<uint32_t> largest_positions(std::span<const float> from, int64_t kept);

}  // namespace syncopate::codec
