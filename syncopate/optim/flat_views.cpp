#include "syncopate/optim/flat_views.h"

#include <ATen/ATen.h>

#include "syncopate/optim/pass.h"

namespace syncopate::optim {

at::Tensor zeros_beside(const tensor::FlatParams& params) {
  return at::zeros(params.values.sizes(),
                   params.values.options().dtype(at::promote_types(params.values.scalar_type(), at::kFloat)));
}

std::vector<at::Tensor> decaying_views(const tensor::FlatParams& params, const at::Tensor& flat) {
  std::vector<at::Tensor> views;
  for_each_span(params, [&](int64_t begin, int64_t end, bool decay) {
    if (decay) views.push_back(flat.narrow(0, begin, end - begin));
  });
  return views;
}

void add_decay(const tensor::FlatParams& params, double weight_decay, const at::Tensor& flat) {
  const auto into = decaying_views(params, flat), values = decaying_views(params, params.values);
  for (size_t i = 0; i < into.size(); ++i) into[i].add_(values[i], weight_decay);
}

std::vector<at::Tensor> entry_views(const tensor::FlatParams& params, const at::Tensor& flat) {
  std::vector<at::Tensor> views;
  for (const auto& entry : params.entries()) views.push_back(flat.narrow(0, entry.offset, entry.size));
  return views;
}

at::Tensor norms_of(const std::vector<at::Tensor>& tensors) {
  return at::stack(at::_foreach_norm(tensors, 2));
}

at::Tensor decay_flags(const tensor::FlatParams& params) {
  const at::Tensor flags = at::empty({static_cast<int64_t>(params.entries().size())}, at::kBool);
  for (size_t i = 0; i < params.entries().size(); ++i) {
    flags.data_ptr<bool>()[i] = params.entries()[i].decay;
  }
  return flags.to(params.values.device());
}

}  // namespace syncopate::optim
