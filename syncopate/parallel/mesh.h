#pragma once

#include "syncopate/comm/group.h"

namespace syncopate::parallel {

/// Who talks to whom. Seen by assembly, engines, the sums of losses and control, and checkpoints; strategies
/// and averagers take one Group: the replicas. Servers stand outside of it.
struct Mesh {
  comm::Group& world;     ///< every worker of the run
  comm::Group& replicas;  ///< those that hold the same parameters as this one
  /// Those that hold the other parts of this replica, in the order of the forward pass; null: it is whole.
  /// All of them have the same rank in `replicas`.
  comm::Group* stages = nullptr;

  bool staged() const { return stages != nullptr; }

  /// Where every worker holds a whole replica.
  static Mesh of_replicas(comm::Group& workers) { return {workers, workers, nullptr}; }
};

}  // namespace syncopate::parallel
