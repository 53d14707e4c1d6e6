#include "syncopate/library/world.h"

#include <fmt/format.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/gpus.h"
#include "syncopate/comm/together/agree.h"
#include "syncopate/comm/together/machine.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/world.h"

namespace syncopate {

World::World(std::unique_ptr<comm::Group> group)
    : group_(std::make_unique<comm::Metered>(std::move(group))),
      rank_(group_->rank()),
      size_(group_->size()),
      local_rank_(rank_) {}

World::World(comm::Membership membership, std::string backend, std::chrono::milliseconds timeout)
    : membership_(std::move(membership)),
      group_(std::make_unique<comm::Metered>(std::move(membership_.group))),
      backend_(std::move(backend)),
      timeout_(timeout),
      rank_(group_->rank()),
      size_(group_->size()),
      local_rank_(comm::neighbours(*group_).before) {}

void World::compute_on(c10::Device device) {
  if (!membership_.lifeline) return;  // threads of one process hand tensors over as they are
  if (gpu_) {
    const bool another = device.is_cuda() && device != *gpu_;
    comm::agree(*group_, fmt::format("a model on a {}", device.is_cuda() ? "GPU" : "CPU"),
                another
                    ? fmt::format("a session of this process uses {} and another one {}; give both the same "
                                  "device",
                                  gpu_->str(), device.str())
                    : std::string());
    return;
  }
  group_->change([&](std::unique_ptr<comm::Group>& inner) {
    membership_.group.swap(inner);
    try {
      comm::use_gpus(membership_, device, backend_, timeout_);
    } catch (...) {
      membership_.group.swap(inner);
      throw;
    }
    membership_.group.swap(inner);
  });
  const std::string& now = membership_.backend;
  if (now == "nccl" || now == comm::kOneGpuBackend) gpu_ = device;
}

void World::leave() {
  membership_.status(-1, "leaving");
  group_.reset();
  membership_.leave();
}

void World::rethrow(const CommError& error) const {
  if (membership_.lifeline) {
    const auto failure = membership_.lifeline->await_failure(std::chrono::milliseconds(500));
    if (failure) throw CommError("{}", failure->for_others());
    membership_.lifeline->fail(error.what(), static_cast<int>(ExitCode::kComm));  // the others know no reason
  }
  throw error;
}

World join(const JoinOptions& options) {
  const run::World found =
      run::find_world({.token = options.token, .insecure = options.insecure}, run::environment_of_process());
  World world(run::join(found, options.backend, options.timeout), options.backend, options.timeout);
  run::set_up_compute(options.threads > 0 ? options.threads
                                          : run::default_threads(comm::ranks_on_this_machine(world.group())));
  return world;
}

World join(char** argv, const JoinOptions& options) {
  run::prepare_process(argv);
  return join(options);
}

}  // namespace syncopate
