#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace syncopate::tensor {

/// [C, 256], float32: what each byte of a channel becomes, taken as 0 to 1, less the mean and divided by the
/// deviation.
at::Tensor image_levels(const std::vector<double>& mean, const std::vector<double>& deviation);

}  // namespace syncopate::tensor
