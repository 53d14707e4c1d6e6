#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/gpu/packing.h"

// Packing on a GPU: what codec::Codec does on the host, in the same bytes. Numbers are fp32, packed bytes
// begin at a multiple of four, all contiguous and on one GPU. Nothing here waits for the device unless it
// says so.
namespace syncopate::gpu {

void encode(const Packing& packing, const at::Tensor& from, const at::Tensor& into);
/// Of top-k, waits: throws CommError for a message that names elements that are not there.
void decode(const Packing& packing, const at::Tensor& from, const at::Tensor& into);
void decode_add(const Packing& packing, const at::Tensor& from, const at::Tensor& into);
/// Error feedback: from += rest, into = encoded from, rest = from - decoded into. When `from` is not finite
/// it is encoded as it is and `rest` stays as it was.
void encode_with_rest(const Packing& packing, const at::Tensor& from, const at::Tensor& rest,
                      const at::Tensor& into);

/// Whether all numbers are finite; waits.
bool finite(const at::Tensor& numbers);

}  // namespace syncopate::gpu
