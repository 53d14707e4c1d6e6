#pragma once

#include <chrono>
#include <memory>

#include "syncopate/comm/group.h"
#include "syncopate/lifeline/lifeline.h"

namespace syncopate::comm {

/// Throws ConfigError where this process cannot be one of `size` ranks that talk over MPI: it is not built
/// in, or no launcher of MPI's has started that many. Looks at the environment alone, so it costs nothing.
void require_mpi(int size);

/// A group over MPI among the ranks of the lifeline's run, which are MPI's own processes with MPI's numbers.
/// MPI is started when the first group is opened. Sums go in rank order, so they have the in-process group's
/// bits at any size. A failure that the lifeline reports ends every wait at once with its message. Each
/// operation may take `timeout`, counted from the wait. Collective. Throws ConfigError as require_mpi does,
/// and where MPI counts its processes otherwise than the run; CommError when it is not ready in time.
std::unique_ptr<Group> open_mpi(std::shared_ptr<lifeline::Lifeline> lifeline,
                                std::chrono::milliseconds timeout);

/// Ends MPI in this process, for good. Waits for the other ranks to do the same, as MPI demands, for as long
/// as the lifeline knows of no failure; throws CommError when it learns of one. No group may be used any
/// more. A process that exits without, as one does that has failed, is ended with all others by mpirun.
void close_mpi(lifeline::Lifeline& lifeline);

}  // namespace syncopate::comm
