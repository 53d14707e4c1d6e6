#include "syncopate/gpu/codec.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "syncopate/base/error.h"
#include "syncopate/gpu/cuda/codec_jobs.h"

namespace syncopate::gpu {
namespace {

void* stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

template <typename Job>
void launch_now(const Job& job) {
  launch(job, stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

uint8_t* bytes_of(const at::Tensor& packed) {
  auto* const bytes = packed.data_ptr<uint8_t>();
  check(reinterpret_cast<uintptr_t>(bytes) % 4 == 0, "packed bytes begin at a multiple of four");
  return bytes;
}

/// Two flags, not set; see codec_jobs.h.
at::Tensor flags_beside(const at::Tensor& numbers) {
  return at::zeros({2}, numbers.options().dtype(at::kInt));
}

at::Tensor room_for_top_k(const at::Tensor& numbers) {
  return at::empty({top_k_room(numbers.numel())}, numbers.options().dtype(at::kInt));
}

void look_at(const at::Tensor& numbers, const at::Tensor& flags) {
  launch_now(FiniteJob{numbers.data_ptr<float>(), numbers.numel(), flags.data_ptr<int32_t>()});
}

bool some_travel(Format format) { return format == Format::kTopK || format == Format::kRandomK; }

/// Packs those that travel, of numbers that were looked at and have their rest.
void pack_some(const Packing& packing, const at::Tensor& from, float* rest, const at::Tensor& flags,
               const at::Tensor& into) {
  if (packing.format == Format::kRandomK) {
    launch_now(PickJob{.from = from.data_ptr<float>(),
                       .rest = rest,
                       .strange = flags.data_ptr<int32_t>(),
                       .packed = bytes_of(into),
                       .count = from.numel(),
                       .kept = packing.kept,
                       .key = packing.key});
    return;
  }
  const at::Tensor room = room_for_top_k(from);
  launch_now(TopKJob{.from = from.data_ptr<float>(),
                     .rest = rest,
                     .strange = flags.data_ptr<int32_t>(),
                     .packed = bytes_of(into),
                     .count = from.numel(),
                     .kept = packing.kept,
                     .room = reinterpret_cast<uint32_t*>(room.data_ptr<int32_t>())});
}

void pack_all(const Packing& packing, const at::Tensor& from, float* rest, const at::Tensor& flags,
              const at::Tensor& into) {
  launch_now(PackJob{.format = packing.format,
                     .from = from.data_ptr<float>(),
                     .rest = rest,
                     .strange = rest == nullptr ? nullptr : flags.data_ptr<int32_t>(),
                     .packed = bytes_of(into),
                     .count = from.numel()});
}

void add_top_k(const Packing& packing, const at::Tensor& from, const at::Tensor& into, bool adds) {
  const at::Tensor room = room_for_top_k(into), flags = flags_beside(into);
  launch_now(UntopJob{.packed = bytes_of(from),
                      .into = into.data_ptr<float>(),
                      .count = into.numel(),
                      .kept = packing.kept,
                      .adds = adds,
                      .room = reinterpret_cast<uint32_t*>(room.data_ptr<int32_t>()),
                      .strange = flags.data_ptr<int32_t>()});
  if (flags[0].item<int32_t>() != 0) throw CommError("a message of top-k names elements that are not there");
}

void unpack(const Packing& packing, const at::Tensor& from, const at::Tensor& into, bool adds) {
  if (into.numel() == 0) return;
  if (some_travel(packing.format) && !adds) into.zero_();
  if (packing.format == Format::kTopK) return add_top_k(packing, from, into, adds);
  if (packing.format == Format::kRandomK) {
    launch_now(UnpickJob{.packed = bytes_of(from),
                         .into = into.data_ptr<float>(),
                         .count = into.numel(),
                         .kept = packing.kept,
                         .key = packing.key});
    return;
  }
  launch_now(UnpackJob{.format = packing.format,
                       .packed = bytes_of(from),
                       .into = into.data_ptr<float>(),
                       .count = into.numel(),
                       .adds = adds});
}

}  // namespace

void encode(const Packing& packing, const at::Tensor& from, const at::Tensor& into) {
  if (from.numel() == 0) return;
  if (!some_travel(packing.format)) return pack_all(packing, from, nullptr, {}, into);
  const at::Tensor flags = flags_beside(from);
  if (packing.format == Format::kRandomK) look_at(from, flags);
  pack_some(packing, from, nullptr, flags, into);
}

void decode(const Packing& packing, const at::Tensor& from, const at::Tensor& into) {
  unpack(packing, from, into, false);
}

void decode_add(const Packing& packing, const at::Tensor& from, const at::Tensor& into) {
  unpack(packing, from, into, true);
}

void encode_with_rest(const Packing& packing, const at::Tensor& from, const at::Tensor& rest,
                      const at::Tensor& into) {
  if (from.numel() == 0) return;
  check(rest.numel() == from.numel() && rest.device() == from.device(), "a rest for every element");
  const at::Tensor flags = flags_beside(from);
  float* const kept = rest.data_ptr<float>();
  look_at(from, flags);
  if (!some_travel(packing.format)) return pack_all(packing, from, kept, flags, into);
  launch_now(AddRestJob{from.data_ptr<float>(), kept, from.numel(), flags.data_ptr<int32_t>()});
  pack_some(packing, from, kept, flags, into);
}

bool finite(const at::Tensor& numbers) {
  if (numbers.numel() == 0) return true;
  const at::Tensor flags = flags_beside(numbers);
  look_at(numbers, flags);
  return flags[0].item<int32_t>() == 0;
}

}  // namespace syncopate::gpu
