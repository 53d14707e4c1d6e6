// What stands in for the folder mpi where the program is built without MPI.
#include "syncopate/base/error.h"
#include "syncopate/comm/mpi.h"

namespace syncopate::comm {

void require_mpi(int) {
  throw ConfigError(
      "this program was built without MPI: use the backend gloo, or install libopenmpi-dev and build it "
      "again");
}

std::unique_ptr<Group> open_mpi(std::shared_ptr<lifeline::Lifeline> lifeline, std::chrono::milliseconds) {
  require_mpi(lifeline->size());
  return nullptr;
}

void close_mpi(lifeline::Lifeline&) {}

}  // namespace syncopate::comm
