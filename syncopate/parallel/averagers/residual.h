#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "syncopate/parallel/averager.h"

namespace syncopate::parallel {

/// What was not sent, kept for every element of the flat array until it is sent with a later gradient. Rows
/// of an embedding table keep theirs until they are next used.
class Residual {
 public:
  /// `name` is that of its tensors in a checkpoint; `place`: where it is kept; `scaled`: it is in the loss
  /// scale, where there is one.
  void attach(const Replica& replica, const std::string& name, c10::Device place, bool scaled = true);
  /// Before a step's first piece: gradients may be in another scale than those it came from.
  void begin();
  /// What belongs to the piece, in its order: a view, or a copy of rows (whose numbers lie where it is kept)
  /// that `put` writes back.
  at::Tensor take(const Piece& piece) const;
  void put(const Piece& piece, const at::Tensor& taken);
  std::vector<StateTensor> state() const;

 private:
  at::Tensor table_of(const Piece& piece) const;  ///< [rows, width]

  const Replica* replica_ = nullptr;
  std::string name_;
  bool scaled_ = true;
  at::Tensor flat_;
  at::Tensor scale_;  ///< one number: the loss scale that `flat_` is in
};

}  // namespace syncopate::parallel
