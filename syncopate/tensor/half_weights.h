#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/tensor/flat_params.h"

namespace syncopate::tensor {

/// For as long as it lives, this thread's layers find the copies of these parameters in half precision, where
/// there are any.
class HalfWeights {
 public:
  explicit HalfWeights(const FlatParams& params);
  ~HalfWeights();
  HalfWeights(const HalfWeights&) = delete;
  HalfWeights& operator=(const HalfWeights&) = delete;

 private:
  const FlatParams* before_;
};

/// The copy of `parameter` in half precision; undefined where there is none or nobody offers it.
at::Tensor half_of(const at::Tensor& parameter);

}  // namespace syncopate::tensor
