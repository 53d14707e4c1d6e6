#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "syncopate/comm/mpi/link.h"
#include "syncopate/comm/waits.h"

namespace syncopate::comm {

/// What a group over MPI shares with its operations, which may outlive it.
struct MpiState {
  std::shared_ptr<Waits> waits;
  std::shared_ptr<const MpiLink> link;
  int rank = 0;
  int size = 1;
  std::atomic<bool> closed{false};  ///< the group is gone

  /// Until `look`, which moves MPI on. `wait` has the deadline; null: of a thread that has none.
  void until(const std::function<bool()>& look, Wait* wait) const;
  void await(MpiCalls& calls, Wait* wait) const {
    until([&] { return calls.done(); }, wait);
  }
};

}  // namespace syncopate::comm
