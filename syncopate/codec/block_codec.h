#pragma once

#include <utility>

#include "syncopate/codec/codec.h"
#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::codec {

/// The codecs that pack bucket by bucket: none, fp16, bf16, int8, int4, sign.
class BlockCodec : public Codec {
 public:
  /// `format` is a member of the kernels' table, so that a change of instruction set reaches it.
  BlockCodec(std::string name, kernels::Format kernels::Kernels::*format)
      : name_(std::move(name)), format_(format) {}
  int64_t packed_bytes(int64_t count) const override;
  void encode(std::span<const float> from, std::span<uint8_t> into, uint64_t key) const override;
  void decode(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override;
  void decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override;
  bool encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                        uint64_t key) const override;
  std::optional<CodecOptions> options() const override { return CodecOptions{.name = name_}; }

 private:
  const kernels::Format& format() const { return kernels::kernels().*format_; }
  std::string name_;
  kernels::Format kernels::Kernels::*format_;
};

}  // namespace syncopate::codec
