#include "syncopate/tensor/batch.h"

#include <ATen/ATen.h>

namespace syncopate::tensor {

Batch Batch::to(c10::Device device) const {
  Batch moved = *this;
  for (auto& [name, field] : moved.fields) field = field.to(device, field.scalar_type(), true);
  return moved;
}

}  // namespace syncopate::tensor
