// What stands in for the folder nccl where the program is built without NCCL.
#include "syncopate/base/error.h"
#include "syncopate/comm/nccl.h"

namespace syncopate::comm {

bool has_nccl() { return false; }

void require_nccl() {
  throw ConfigError(
      "this program was built without NCCL: use the backend auto, or build it with CUDA's compiler, NCCL's "
      "headers and a libtorch that has NCCL");
}

std::unique_ptr<Group> over_nccl(std::unique_ptr<Group>, std::shared_ptr<lifeline::Lifeline>,
                                 std::chrono::milliseconds, c10::Device) {
  require_nccl();
  return nullptr;
}

}  // namespace syncopate::comm
