#include "syncopate/parallel/averagers/packer.h"

#include <ATen/ATen.h>

#include <utility>

#include "syncopate/codec/kernels/kernels.h"
#include "syncopate/gpu/codec.h"
#include "syncopate/gpu/graph.h"

namespace syncopate::parallel {
namespace {

struct FormatName {
  const char* name;
  gpu::Format format;
};

constexpr FormatName kFormats[] = {
    {"none", gpu::Format::kFp32},  {"fp16", gpu::Format::kFp16},        {"bf16", gpu::Format::kBf16},
    {"int8", gpu::Format::kInt8},  {"int4", gpu::Format::kInt4},        {"sign", gpu::Format::kSign},
    {"top-k", gpu::Format::kTopK}, {"random-k", gpu::Format::kRandomK},
};

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

std::span<uint8_t> bytes(const at::Tensor& tensor) {
  return {tensor.data_ptr<uint8_t>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

bool packs_on(c10::Device device) { return device.is_cuda() && gpu::built(); }

bool all_finite(const at::Tensor& numbers) {
  if (numbers.is_cuda()) return gpu::finite(numbers);
  return codec::kernels::kernels().finite(numbers.data_ptr<float>(), numbers.numel());
}

Packer::Packer(std::unique_ptr<codec::Codec> codec) : codec_(std::move(codec)) {
  const std::optional<codec::CodecOptions> options = codec_->options();
  if (!options) return;
  ratio_ = options->ratio;
  for (const FormatName& each : kFormats) {
    if (options->name == each.name) format_ = each.format;
  }
}

c10::Device Packer::place_of(c10::Device device) const {
  return format_ && packs_on(device) ? device : c10::Device(at::kCPU);
}

at::Tensor Packer::room(int64_t count, c10::Device place) const {
  return at::empty({codec_->packed_bytes(count)}, at::TensorOptions().dtype(at::kByte).device(place));
}

gpu::Packing Packer::packing(int64_t count, uint64_t key) const {
  return {.format = format_.value(), .kept = codec::kept_of(count, ratio_), .key = key};
}

void Packer::encode(const at::Tensor& from, const at::Tensor& into, uint64_t key) const {
  if (from.is_cuda()) return gpu::encode(packing(from.numel(), key), from, into);
  codec_->encode(floats(from), bytes(into), key);
}

void Packer::decode(const at::Tensor& from, const at::Tensor& into, uint64_t key) const {
  if (into.is_cuda()) return gpu::decode(packing(into.numel(), key), from, into);
  codec_->decode(bytes(from), floats(into), key);
}

void Packer::decode_add(const at::Tensor& from, const at::Tensor& into, uint64_t key) const {
  if (into.is_cuda()) return gpu::decode_add(packing(into.numel(), key), from, into);
  codec_->decode_add(bytes(from), floats(into), key);
}

void Packer::encode_with_rest(const at::Tensor& from, const at::Tensor& rest, const at::Tensor& into,
                              uint64_t key) const {
  if (from.is_cuda()) return gpu::encode_with_rest(packing(from.numel(), key), from, rest, into);
  codec_->encode_with_rest(floats(from), floats(rest), bytes(into), key);
}

}  // namespace syncopate::parallel
