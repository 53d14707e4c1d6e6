#include "syncopate/parallel/engine.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

void Engine::infer(nn::Model& model, tensor::Precision precision, int64_t batches, const MakeBatch& batch,
                   const UseOutput& use) {
  const at::NoGradGuard no_grad;
  model.set_mode({.training = false});
  const at::Device device = model.parameters().front().tensor.device();
  for (int64_t number = 0; number < batches; ++number) {
    const tensor::Batch each = batch(number).to(device);
    const tensor::Autocast autocast(precision, device);
    use(model.forward(each), each);
  }
}

}  // namespace syncopate::parallel
