#include "syncopate/comm/group.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"

namespace syncopate::comm {

at::Tensor Group::room(int64_t count, at::ScalarType type) { return at::zeros({count}, type); }

at::Tensor Group::common(int64_t /*count*/, at::ScalarType /*type*/) { return {}; }

Pending Group::sum_into(at::Tensor /*total*/, at::Tensor /*mine*/) {
  throw InternalError("a group without common memory cannot sum into it");
}

Pending Group::sum_rows_into(at::Tensor, at::Tensor, at::Tensor, at::Tensor) {
  throw InternalError("a group without common memory cannot sum into it");
}

}  // namespace syncopate::comm
