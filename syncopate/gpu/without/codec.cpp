#include "syncopate/gpu/codec.h"

#include "syncopate/base/error.h"
#include "syncopate/gpu/orthonormal.h"

// A program without CUDA's toolkit: callers ask `built` first.
namespace syncopate::gpu {
namespace {

[[noreturn]] void no_packing() { throw InternalError("this program was built without CUDA's toolkit"); }

}  // namespace

void encode(const Packing&, const at::Tensor&, const at::Tensor&) { no_packing(); }
void decode(const Packing&, const at::Tensor&, const at::Tensor&) { no_packing(); }
void decode_add(const Packing&, const at::Tensor&, const at::Tensor&) { no_packing(); }
void encode_with_rest(const Packing&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  no_packing();
}
bool finite(const at::Tensor&) { no_packing(); }
void orthonormalize(const std::vector<at::Tensor>&, const std::vector<uint64_t>&) { no_packing(); }

}  // namespace syncopate::gpu
