#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "syncopate/nn/model.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/tensor/safetensors.h"

namespace syncopate::test {

/// A golden file of tests/data_files: parameters, batches, and what came of them.
class GoldenRun {
 public:
  /// `fields` of each batch.
  GoldenRun(const std::string& name, const std::vector<std::string>& fields);

  nlohmann::json config() const;
  at::Tensor read(const std::string& name) const { return file_.read(name); }
  void set_parameters(const nn::Model& model) const;

  /// The largest relative error of the losses when `model`, as it is, is trained by our own optimizer.
  double loss_error(nn::Model& model, const optim::OptimizerOptions& options, double lr) const;

  std::vector<tensor::Batch> batches;

 private:
  tensor::SafetensorsFile file_;
};

}  // namespace syncopate::test
