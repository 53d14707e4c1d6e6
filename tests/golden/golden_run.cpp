#include "tests/golden/golden_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "syncopate/tensor/flat_params.h"
#include "tests/golden/golden_support.h"
#include "tests/support/support.h"

namespace syncopate::test {

GoldenRun::GoldenRun(const std::string& name, const std::vector<std::string>& fields)
    : file_(source_dir() / fmt::format("tests/data_files/golden_{}.safetensors", name)) {
  at::set_num_threads(1);  // tensors this small only wait for other threads
  for (int i = 0; file_.contains(fmt::format("batch.{}.labels", i)); ++i) {
    tensor::Batch batch;
    for (const std::string& field : fields) {
      batch.fields[field] = file_.read(fmt::format("batch.{}.{}", i, field));
    }
    batch.ids.resize(static_cast<size_t>(batch.at("labels").size(0)));
    batches.push_back(batch);
  }
}

nlohmann::json GoldenRun::config() const { return nlohmann::json::parse(file_.metadata().at("config")); }

void GoldenRun::set_parameters(const nn::Model& model) const {
  for (const auto& [name, parameter] : model.parameters()) {
    parameter.detach().copy_(file_.read("parameter." + name));
  }
}

double GoldenRun::loss_error(nn::Model& model, const optim::OptimizerOptions& options, double lr) const {
  tensor::FlatParams params(model.parameters());
  const auto optimizer = optim::make_optimizer(options, params);
  std::vector<double> losses;
  for (const tensor::Batch& batch : batches) {
    params.zero_grads();
    const tensor::Loss loss = model.loss(model.forward(batch), batch);
    loss.sum.backward();
    optimizer->step(params, lr, 1.0 / static_cast<double>(loss.count));
    losses.push_back(loss.sum.item<double>() / static_cast<double>(loss.count));
  }
  const at::Tensor right = file_.read("losses").to(at::kDouble);
  return worst_relative(losses, {right.data_ptr<double>(), right.data_ptr<double>() + right.numel()});
}

}  // namespace syncopate::test
