#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/tensor/batch.h"

namespace syncopate::tensor {

/// Every parameter a view into one contiguous tensor and every gradient likewise, laid out in the order
/// gradients become ready (the reverse of the forward pass), each aligned to 64 bytes. So averaging is one
/// call, a bucket is a `narrow` and the optimizer is one pass over one array. The gaps between parameters
/// stay zero.
///
/// The model's tensors are rebound to the views on construction and keep them alive. Nothing else may rebind
/// a parameter or its gradient; `check_views` says so when something did.
class FlatParams {
 public:
  struct Entry {
    std::string name;
    at::Tensor parameter;  ///< the model's own tensor
    int64_t offset = 0;    ///< in elements, into `values` and `grads`
    int64_t size = 0;
    bool decay = true;        ///< matrices and tables decay; biases and LayerNorm do not
    int64_t half_offset = 0;  ///< in elements, into `half`
    /// Whether its copy in half precision has channels last, as convolutions read it: kernels of several
    /// pixels.
    bool channels_last() const { return parameter.dim() == 4 && parameter.size(2) * parameter.size(3) > 1; }
  };

  /// `parameters` in the order the forward pass uses them; all of one floating type. They move to `device`,
  /// or stay where the first one is.
  explicit FlatParams(const std::vector<NamedTensor>& parameters,
                      std::optional<c10::Device> device = std::nullopt);

  /// Arrays without a model, for whoever updates a part of one: `entries` say where its parameters lie in
  /// `values`, their `parameter` is undefined.
  FlatParams(at::Tensor values, std::vector<Entry> entries);

  const std::vector<Entry>& entries() const { return entries_; }  ///< in the order gradients become ready
  int64_t size() const { return values.numel(); }                 ///< elements, gaps counted
  at::Tensor value_of(const Entry& entry) const;                  ///< flat view of one parameter
  at::Tensor grad_of(const Entry& entry) const;
  /// What an update is made of: once ranks have exchanged, the gradient of all of them.
  const at::Tensor& summed() const { return sums.defined() ? sums : grads; }
  /// The entry whose parameter shares `table`'s storage position; null when there is none.
  const Entry* find(const at::Tensor& table) const;

  /// From here on the parameters are what `storage` holds (as many elements, of the same type), and live
  /// there.
  void move_values(const at::Tensor& storage);
  /// The same for the gradients; what they are now is forgotten.
  void move_grads(const at::Tensor& storage);

  /// From here on there is room for a copy of the values in half precision, which matrix products read.
  /// Matrices come first, each of them right behind the one before it in `entries`, then the rest: so several
  /// matrices can be one factor.
  void keep_half(at::ScalarType type);
  at::Tensor half_of(const Entry& entry) const;  ///< in its shape; where it has channels last, in that order

  void zero_grads();
  /// The same, knowing that a listed table differs from zero in the rows given alone.
  void zero_grads(const std::vector<RowUse>& rows);
  /// The name of a parameter that left its place, or whose gradient did; none: all are there.
  std::optional<std::string> strayed() const;
  void check_views() const;  ///< throws InternalError when one did

  at::Tensor values;
  at::Tensor grads;
  at::Tensor sums;          ///< where all ranks' gradients are summed up; undefined: in `grads`
  at::Tensor half;          ///< undefined: no copy is kept
  bool half_fresh = false;  ///< whoever changed the values last wrote the copy, too
  at::Tensor layout;        ///< where what lies, for a GPU's kernels; made by who needs it (gpu/update.h)

 private:
  std::vector<Entry> entries_;
};

}  // namespace syncopate::tensor
