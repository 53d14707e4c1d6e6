#pragma once

#include <c10/core/ScalarType.h>

namespace syncopate::comm {

/// The type in which a tensor is summed. Gloo refuses bfloat16, bool and int16; wider types hold them, and
/// the in-process group takes the same ones so that both round alike.
inline at::ScalarType reduced_as(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return at::kFloat;
    case at::kBool:
    case at::kShort:
      return at::kInt;
    default:
      return type;
  }
}

}  // namespace syncopate::comm
