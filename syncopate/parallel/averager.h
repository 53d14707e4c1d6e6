#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/parallel/state.h"

namespace syncopate::parallel {

/// What one exchange brings together: a slice of a flat array, or some rows of an embedding table in it.
struct Piece {
  at::Tensor tensor;   ///< contiguous; summed in place
  int64_t offset = 0;  ///< where the slice, or the table, begins in the flat array
  at::Tensor rows{};   ///< int64, on the host, alike on all ranks: `tensor` holds these rows of the table;
                       ///< undefined: all
  at::Tensor into{};   ///< in the group's common memory: the sum comes here alone; undefined: in place
  /// With `into`, of some rows: a byte for each row of the table, in the group's room, that says which are
  /// this rank's. Then `tensor` and `into` are the whole table.
  at::Tensor in_use{};
};

/// A slice of the gradient, which is summed up where `params` keep the sum.
Piece piece_of(const tensor::FlatParams& params, int64_t offset, int64_t size);

/// How ranks bring one tensor together: afterwards it holds, on every rank, the sum over ranks. The division
/// that makes it a mean is by the global count of examples, known to the replica, so that uneven ranks weigh
/// right.
class Averager {
 public:
  virtual ~Averager() = default;
  /// Once, before the first piece: what the pieces are slices of.
  virtual void attach(const Replica&) {}
  /// Before the first piece of a step (from 0).
  virtual void begin(int64_t /*step*/) {}
  /// In place. Every rank starts the same pieces in the same order; several may be under way.
  virtual comm::Pending start(Piece piece) = 0;
  /// Whether the group itself sums the pieces, where they are: quicker in its own room (comm::Group::room).
  virtual bool sums_in_place() const { return false; }
  /// Whether sums may come into common memory, so that ranks that share memory share the update
  /// (SharedUpdate).
  virtual bool sums_into_common() const { return false; }
  /// What a checkpoint must hold. After `attach`.
  virtual std::vector<StateTensor> state() { return {}; }
};

}  // namespace syncopate::parallel
