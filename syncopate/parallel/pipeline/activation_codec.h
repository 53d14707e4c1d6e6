#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/tensor/batch.h"

namespace syncopate::parallel {

struct ActivationOptions {
  std::string codec = "none";        ///< none, fp16, direct, ac-sgd
  int forward_bits = 4;              ///< direct, ac-sgd: of a hidden value, 1 to 8
  int backward_bits = 8;             ///< direct, ac-sgd: of a gradient
  std::string rounding = "nearest";  ///< nearest, stochastic
  std::string first_visit = "full";  ///< ac-sgd: how an example is sent first: full, half, int8
  std::string buffer = "memory";     ///< ac-sgd: where buffers are: memory, file
  std::string store = "fp32";        ///< ac-sgd: in what they are kept: fp32, fp16, int8, int4
  double buffer_gib = 4;             ///< ac-sgd: how much one end of an edge may keep; the same at both ends
  std::filesystem::path folder{};    ///< where a file buffer lies; made where it is missing
  /// ac-sgd: false where examples are drawn anew on every visit (masked words, crops): an id may then come
  /// back with another content, of the same number of rows.
  bool same_content = true;
};

/// Between which stages, of which run.
struct ActivationEdge {
  std::string name = "edge";  ///< of this end, like no other's in the folder: "stage1.in"
  uint64_t run = 0;           ///< what buffers belong to; those of another run are refused
  uint64_t seed = 0;          ///< of stochastic rounding: differs between edges and replicas
};

/// What was sent in one direction, by the end that sent it. Messages with what is not finite count in values
/// and bits alone.
struct ActivationTraffic {
  int64_t values = 0;  ///< padding left out where it is not sent
  int64_t bits = 0;    ///< steps included
  double error = 0;    ///< squared, of what was received against what was meant
  double meant = 0;    ///< squares of what was meant
  double change = 0;   ///< squares of what was meant against what was remembered
  double bits_per_value() const;
  double relative_error() const;   ///< |received - meant| / |meant|
  double relative_change() const;  ///< |meant - remembered| / |meant|: what ac-sgd gains from being small
};

struct ActivationSums {
  ActivationTraffic forward, backward;
  ActivationTraffic changes;  ///< ac-sgd: of `forward`, what was no first visit
  // ac-sgd; the same at both ends.
  int64_t first_visits = 0;   ///< examples sent as such that are remembered since
  int64_t later_visits = 0;   ///< sent as a change
  int64_t beyond_budget = 0;  ///< visits of examples that the budget has no room for, sent as first ones
  int64_t buffer_bytes = 0;   ///< kept now
  int64_t examples_kept = 0;
  int64_t examples_beyond = 0;  ///< different ones
};

/// Hidden states and their gradients on one edge of one pipeline, at one of its ends: a sender of hidden
/// states or a receiver. Both ends have one each and see the same training batches in the same order, so both
/// know the size of every message beforehand. On the CPU and in fp32: [B, L, C] (rows of tokens), [B, C, H,
/// W] (rows of pixels) or [B, C]. Only rows of real tokens travel (those that "attention_mask" has, or all);
/// others arrive as zeros. With "none" the tensor itself travels, padding too.
///
/// For one thread. Values that are not finite arrive as such, at least one of them, and are not remembered.
class ActivationCodec {
 public:
  ActivationCodec(const ActivationOptions& options, const ActivationEdge& edge);
  virtual ~ActivationCodec();
  ActivationCodec(const ActivationCodec&) = delete;
  ActivationCodec& operator=(const ActivationCodec&) = delete;

  /// Training, forward. A contiguous tensor to send; for all but "none" 1-D bytes.
  virtual at::Tensor pack(const at::Tensor& hidden, const tensor::Batch& batch) = 0;
  /// At the receiver: an empty one of that size and type. Several batches may be expected before the first is
  /// unpacked.
  virtual at::Tensor expect(const at::Tensor& like, const tensor::Batch& batch) = 0;
  /// Shaped and laid out like `like`. In the order of `expect`.
  virtual at::Tensor unpack(const at::Tensor& message, const at::Tensor& like,
                            const tensor::Batch& batch) = 0;

  /// The same backwards: the receiver of hidden states packs, their sender expects and unpacks.
  virtual at::Tensor pack_gradient(const at::Tensor& gradient, const tensor::Batch& batch) = 0;
  virtual at::Tensor expect_gradient(const at::Tensor& like, const tensor::Batch& batch) const = 0;
  virtual at::Tensor unpack_gradient(const at::Tensor& message, const at::Tensor& like,
                                     const tensor::Batch& batch) const = 0;

  /// Evaluation with the codec on: nothing is remembered, nothing counted, rounding is to nearest. ac-sgd
  /// sends as on a first visit. To evaluate without compression use a codec "none".
  virtual at::Tensor pack_once(const at::Tensor& hidden, const tensor::Batch& batch) const = 0;
  virtual at::Tensor expect_once(const at::Tensor& like, const tensor::Batch& batch) const = 0;
  virtual at::Tensor unpack_once(const at::Tensor& message, const at::Tensor& like,
                                 const tensor::Batch& batch) const = 0;

  /// These examples come soon: a file buffer is read ahead, behind compute.
  virtual void prefetch(std::span<const int64_t>) {}

  virtual ActivationSums sums() const { return sums_; }
  /// A checksum over what is remembered: the same at both ends after every message. 0 without buffers.
  virtual uint64_t digest() const { return 0; }

  /// The sums, draws and buffers in one file, for a checkpoint: whole or not at all, with a checksum over
  /// every byte. Between messages. Throws DataError.
  void save(const std::filesystem::path& path) const;
  /// Throws DataError for a file that is damaged, of another run, codec or store; what was there is then
  /// kept.
  void load(const std::filesystem::path& path);

 protected:
  /// What a codec keeps beyond sums: views into it, valid until it changes; and back.
  virtual std::vector<std::string_view> kept() const { return {}; }
  virtual void keep(std::string_view) {}

  ActivationOptions options_;
  ActivationEdge edge_;
  ActivationSums sums_;
  uint64_t messages_ = 0;  ///< packed so far, both ways: the draws' key
};

const std::vector<std::string>& activation_codec_names();
/// Throws ConfigError for an unknown name or a value out of range.
std::unique_ptr<ActivationCodec> make_activation_codec(const ActivationOptions& options,
                                                       const ActivationEdge& edge = {});

}  // namespace syncopate::parallel
