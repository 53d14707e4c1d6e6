#include "syncopate/nn/model.h"

#include "syncopate/base/error.h"

namespace syncopate::nn {

at::Tensor Model::empty_hidden(const Batch&, int) const {
  throw InternalError("this model cannot be cut into stages: it does not say what passes between its layers");
}

int64_t Model::count(const Batch&) const {
  throw InternalError("this model cannot be cut into stages: it does not say what its loss counts");
}

}  // namespace syncopate::nn
