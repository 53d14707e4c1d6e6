#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "syncopate/comm/mpi/link.h"
#include "syncopate/comm/operations/waits.h"

namespace syncopate::comm {

/// What a group over MPI shares with its operations, which may outlive it.
struct MpiState {
  std::shared_ptr<Waits> waits;
  std::shared_ptr<const MpiLink> link;
  int rank = 0;
  int size = 1;
  std::atomic<bool> closed{false};  ///< the group is gone

  /// Calls `look`, which lets MPI progress, until it returns true. Throws when one of the `awaited` ranks has
  /// left, and at the deadline of `wait`; null: a thread without a deadline. `operation` is named in the
  /// sentence.
  void until(const std::function<bool()>& look, const std::function<std::vector<int>()>& awaited,
             const char* operation, Wait* wait) const;
};

/// Tells those who wait for this rank that it will send nothing more. MPI itself lets nobody leave: its end
/// waits for all.
void say_farewell(lifeline::Lifeline& lifeline, int process);

}  // namespace syncopate::comm
