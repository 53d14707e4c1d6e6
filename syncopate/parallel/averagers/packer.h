#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "syncopate/codec/codec.h"
#include "syncopate/gpu/packing.h"

namespace syncopate::parallel {

/// A codec for tensors, which packs them where they are: on the host, or on a GPU in the same bytes. Numbers
/// are fp32, contiguous and on the device that `place_of` gave; packed bytes are beside them.
class Packer {
 public:
  explicit Packer(std::unique_ptr<codec::Codec> codec);

  /// Where numbers that lie on `device` are packed. The host, unless this program has kernels for the device
  /// and they know the codec.
  c10::Device place_of(c10::Device device) const;
  /// Room for so many numbers.
  at::Tensor room(int64_t count, c10::Device place) const;

  // As in codec::Codec.
  void encode(const at::Tensor& from, const at::Tensor& into, uint64_t key) const;
  void decode(const at::Tensor& from, const at::Tensor& into, uint64_t key) const;
  void decode_add(const at::Tensor& from, const at::Tensor& into, uint64_t key) const;
  void encode_with_rest(const at::Tensor& from, const at::Tensor& rest, const at::Tensor& into,
                        uint64_t key) const;

 private:
  gpu::Packing packing(int64_t count, uint64_t key) const;

  std::unique_ptr<codec::Codec> codec_;
  std::optional<gpu::Format> format_;  ///< as kernels for GPUs call it; none: they do not know it
  double ratio_ = 0;
};

/// Whether this program can pack on the device.
bool packs_on(c10::Device device);
/// Of fp32 numbers on the host or where it can pack; waits for the device.
bool all_finite(const at::Tensor& numbers);

}  // namespace syncopate::parallel
