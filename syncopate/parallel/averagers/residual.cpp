#include "syncopate/parallel/averagers/residual.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"

namespace syncopate::parallel {

void Residual::attach(const Replica& replica, const std::string& name, c10::Device place, bool scaled) {
  replica_ = &replica;
  name_ = name;
  scaled_ = scaled;
  flat_ = at::zeros({replica.params.size()}, at::TensorOptions().dtype(at::kFloat).device(place));
  scale_ = at::ones({1}, at::kDouble);
}

void Residual::begin() {
  if (!scaled_ || replica_ == nullptr || replica_->loss_scale == nullptr) return;
  double& in = *scale_.data_ptr<double>();
  const double now = replica_->loss_scale->value();
  if (now != in) flat_.mul_(now / in);
  in = now;
}

at::Tensor Residual::table_of(const Piece& piece) const {
  for (const auto& entry : replica_->params.entries()) {
    if (entry.offset == piece.offset) {
      return flat_.narrow(0, entry.offset, entry.size).view({entry.parameter.size(0), -1});
    }
  }
  throw InternalError("rows of a table that is not there");
}

at::Tensor Residual::take(const Piece& piece) const {
  if (!piece.rows.defined()) return flat_.narrow(0, piece.offset, piece.tensor.numel());
  return table_of(piece).index_select(0, piece.rows).view({-1});
}

void Residual::put(const Piece& piece, const at::Tensor& taken) {
  if (!piece.rows.defined()) return;
  const at::Tensor table = table_of(piece);
  table.index_copy_(0, piece.rows, taken.view({piece.rows.numel(), table.size(1)}));
}

std::vector<StateTensor> Residual::state() const {
  return {
      {.name = name_, .tensor = flat_, .laid_at = 0, .when_resized = "error-feedback residuals were dropped"},
      {.name = name_ + ".scale", .tensor = scale_}};
}

}  // namespace syncopate::parallel
