#include <ATen/ATen.h>

#include "syncopate/base/error.h"
#include "syncopate/gpu/batch_norm.h"
#include "syncopate/gpu/layers.h"
#include "syncopate/gpu/patches.h"
#include "syncopate/gpu/update.h"

// A program without CUDA's toolkit: callers ask `built` first.
namespace syncopate::gpu {
namespace {

[[noreturn]] void no_kernels() { throw InternalError("this program was built without CUDA's toolkit"); }

}  // namespace

bool takes(int64_t) { return false; }
bool takes_images(int64_t) { return false; }
BatchNormed batch_norm(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, bool,
                       const at::Tensor&, const at::Tensor&, double, double) {
  no_kernels();
}
at::Tensor patches(const at::Tensor&) { no_kernels(); }
void add_laid(const at::Tensor&, const at::Tensor&) { no_kernels(); }
BatchNormGrads batch_norm_grads(const at::Tensor&, const at::Tensor&, const at::Tensor&, const BatchNormed&,
                                const at::Tensor&, const at::Tensor&, bool, bool, const at::Tensor&,
                                const at::Tensor&) {
  no_kernels();
}
Normed norm_of_sum(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                   const at::Tensor&, double, const Drop&) {
  no_kernels();
}
NormGrads norm_of_sum_grads(const at::Tensor&, const Normed&, const at::Tensor&, const Drop&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  no_kernels();
}
Normed norm(const at::Tensor&, const at::Tensor&, const at::Tensor&, double) { no_kernels(); }
at::Tensor add_dropped(const at::Tensor&, const at::Tensor&, const at::Tensor&, const Drop&) { no_kernels(); }
at::Tensor add_dropped_grad(const at::Tensor&, const Drop&, const at::Tensor&) { no_kernels(); }
at::Tensor cross_entropy(const at::Tensor&, int64_t, const at::Tensor&, int64_t) { no_kernels(); }
at::Tensor drop(const at::Tensor&, const Drop&) { no_kernels(); }
at::Tensor gelu(const at::Tensor&, bool, const Drop&) { no_kernels(); }
void gelu_grad(const at::Tensor&, const at::Tensor&, bool, const Drop&, const at::Tensor&) { no_kernels(); }
at::Tensor join_and_sum(const std::vector<at::Tensor>&, const std::vector<at::Tensor>&) { no_kernels(); }
Embedded embed(const Embedding&) { no_kernels(); }
void embed_grads(const at::Tensor&, const Embedding&, const at::Tensor&, const Tables&, const at::Tensor&,
                 const at::Tensor&) {
  no_kernels();
}
void set_product(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool) { no_kernels(); }
void add_product(const at::Tensor&, const at::Tensor&, const at::Tensor&) { no_kernels(); }

void adamw(tensor::FlatParams&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const AdamWStep&) {
  no_kernels();
}
void refresh_half(tensor::FlatParams&) { no_kernels(); }
Clip::Clip(c10::Device) { no_kernels(); }
void Clip::measure(const at::Tensor&, double, double) { no_kernels(); }
void Clip::set_factor(double) { no_kernels(); }
double Clip::norm() { no_kernels(); }

}  // namespace syncopate::gpu
