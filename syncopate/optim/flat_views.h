#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "syncopate/tensor/flat_params.h"

// What the optimizers' ATen paths share.
namespace syncopate::optim {

/// Zeros beside the parameters, in fp32 where those have fewer bits: small updates would be lost in them.
at::Tensor zeros_beside(const tensor::FlatParams& params);

/// The parts of `flat` (laid out as `params`) whose parameters decay, neighbours joined.
std::vector<at::Tensor> decaying_views(const tensor::FlatParams& params, const at::Tensor& flat);

/// Adds `weight_decay` times the values to `flat`, where they decay.
void add_decay(const tensor::FlatParams& params, double weight_decay, const at::Tensor& flat);

/// One view of `flat` per entry.
std::vector<at::Tensor> entry_views(const tensor::FlatParams& params, const at::Tensor& flat);

/// The Euclidean norm of each tensor, [tensors] on their device; nothing waits for the device.
at::Tensor norms_of(const std::vector<at::Tensor>& tensors);

/// For each entry whether it decays, bool [entries] on the parameters' device.
at::Tensor decay_flags(const tensor::FlatParams& params);

}  // namespace syncopate::optim
