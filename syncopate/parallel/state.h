#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/tensor/flat_params.h"

namespace syncopate::parallel {

/// Whose a tensor of a checkpoint is, and what becomes of it where a run resumes on another number of ranks.
enum class Scope {
  kCommon,  ///< alike on all ranks: kept once, for any number of them
  kOwn,     ///< each rank has its own: dropped where their number changes
  kMean,    ///< each rank has its own: all take the mean where their number changes
};

/// What a checkpoint must hold, to be written into in place when resuming.
struct StateTensor {
  std::string name;
  at::Tensor tensor;
  Scope scope = Scope::kOwn;
  /// Laid out as the flat parameters from this element on: a checkpoint holds it by parameter.
  std::optional<int64_t> laid_at{};
  std::string when_resized{};  ///< what to tell users then, "outer momentum was kept"; empty: nothing
};

/// The same with what is laid out as the parameters cut into views of their shapes, each named
/// "NAME.PARAMETER", in the order of the forward pass.
std::vector<StateTensor> by_parameter(const tensor::FlatParams& params,
                                      const std::vector<StateTensor>& state);

/// Appends `more`, its names after `prefix`.
void append(std::vector<StateTensor>& state, const std::string& prefix, std::vector<StateTensor> more);

}  // namespace syncopate::parallel
