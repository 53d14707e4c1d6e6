#include "syncopate/tensor/batch.h"

#include <ATen/ATen.h>

#include "syncopate/base/rng.h"

namespace syncopate::tensor {

Batch Batch::to(c10::Device device) const {
  Batch moved = *this;
  for (auto& [name, field] : moved.fields) field = field.to(device, field.scalar_type(), true);
  return moved;
}

Batch Batch::with_noise(uint64_t key) const {
  Batch drawn = *this;
  const at::Tensor examples = at::empty({size()}, at::kLong);
  for (int64_t i = 0; i < size(); ++i)
    examples.data_ptr<int64_t>()[i] =
        static_cast<int64_t>(mix(static_cast<uint64_t>(ids[static_cast<size_t>(i)])));
  drawn.fields["noise_key"] = at::full({1}, static_cast<int64_t>(key), at::kLong);
  drawn.fields["noise_examples"] = examples;
  return drawn;
}

}  // namespace syncopate::tensor
