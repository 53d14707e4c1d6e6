#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syncopate::codec {

struct CodecOptions {
  std::string name = "none";
  double ratio = 0.01;  ///< top-k, random-k: share of the elements that are sent
};

/// Turns fp32 numbers into fewer bytes and back. The packed bytes are exactly what is sent, scales and
/// indices included, and their number depends on the count alone, so that every rank knows it in advance. The
/// same bytes give the same numbers on every CPU and GPU.
///
/// Numbers that are not finite stay visible: what is decoded then holds at least one that is not finite.
///
/// `key` decides which elements random-k picks; others ignore it. Decode with the key that was used to
/// encode.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual int64_t packed_bytes(int64_t count) const = 0;
  /// `into` has packed_bytes(from.size()) bytes.
  virtual void encode(std::span<const float> from, std::span<uint8_t> into, uint64_t key = 0) const = 0;
  virtual void decode(std::span<const uint8_t> from, std::span<float> into, uint64_t key = 0) const = 0;
  /// The same, added to what is there.
  virtual void decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t key = 0) const = 0;
  /// Error feedback: from += rest, into = encoded from, rest = from - decoded into. When `from` is not
  /// finite it is encoded as it is and `rest` stays as it was; returns whether it was finite.
  virtual bool encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                                uint64_t key = 0) const = 0;
  /// What make_codec makes it of, so that a GPU can write and read the same bytes. None: a codec of
  /// somebody's own, which works on the host.
  virtual std::optional<CodecOptions> options() const { return std::nullopt; }
};

/// "none", "fp16", "bf16", "int8", "int4", "sign", "top-k", "random-k".
const std::vector<std::string>& element_codec_names();
/// Throws ConfigError for an unknown name or a ratio outside (0, 1].
std::unique_ptr<Codec> make_codec(const CodecOptions& options);

/// How many of `count` elements are sent at this ratio: at least one, unless `count` is 0.
int64_t kept_of(int64_t count, double ratio);

}  // namespace syncopate::codec
