#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/nn/layers/noise.h"
#include "syncopate/tensor/precision.h"

// What the fast layers share.
namespace syncopate::nn::fast {

/// Whether our kernels can take them: fp32 on the CPU, contiguous, not empty. Products between the kernels
/// may be in bf16 (product.h).
bool can_run(std::initializer_list<at::Tensor> tensors);

kernels::NoiseJob noise_job(const Noise& noise);  ///< valid while the noise is

/// Calls work(first, last) on parts of 0..rows-1, on several threads; rows must not depend on each other.
void for_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& work);

/// Calls work(first, last, sums) on parts of 0..rows-1, each with zeroed sums [width] of its own, and returns
/// the total [width]. The parts depend on `rows` alone, so that the number of threads does not change the
/// result.
at::Tensor sum_over_rows(int64_t rows, int64_t width,
                         const std::function<void(int64_t, int64_t, float*)>& work);

/// An attention of `width` columns over all heads, without its arrays.
kernels::AttentionJob attention_shape(int64_t heads, int64_t width, int64_t queries, int64_t length,
                                      const Noise& noise, tensor::Precision precision);

/// Runs one of the attention kernels over all heads of all examples, on several threads.
void for_heads(int64_t examples, const kernels::AttentionJob& job,
               decltype(kernels::Kernels::attention) kernel);

/// Any copyable value as something an autograd context can hold.
template <typename Value>
struct Held : torch::CustomClassHolder {
  explicit Held(Value v) : value(std::move(v)) {}
  Value value;
};

template <typename Value>
at::IValue hold(Value value) {
  return at::IValue::make_capsule(c10::make_intrusive<Held<Value>>(std::move(value)));
}

template <typename Value>
const Value& held(const at::IValue& capsule) {
  return static_cast<const Held<Value>&>(*capsule.toCapsule()).value;
}

}  // namespace syncopate::nn::fast
