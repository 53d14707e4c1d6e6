#include "syncopate/library/world.h"

#include "syncopate/base/error.h"
#include "syncopate/comm/machine.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/world.h"

namespace syncopate {

World::World(std::unique_ptr<comm::Group> group)
    : group_(std::make_unique<comm::Metered>(std::move(group))),
      rank_(group_->rank()),
      size_(group_->size()) {}

World::World(comm::Membership membership)
    : membership_(std::move(membership)),
      group_(std::make_unique<comm::Metered>(std::move(membership_.group))),
      rank_(group_->rank()),
      size_(group_->size()) {}

void World::leave() {
  membership_.status(-1, "leaving");
  group_.reset();
  membership_.leave();
}

void World::rethrow(const CommError& error) const {
  if (membership_.lifeline) {
    const auto failure = membership_.lifeline->await_failure(std::chrono::milliseconds(500));
    if (failure) throw CommError("{}", failure->for_others());
  }
  throw error;
}

World join(const JoinOptions& options) {
  const run::World found = run::find_world({.token = options.token, .insecure = options.insecure},
                                           run::environment_of_process());
  World world(run::join(found, options.backend, options.timeout));
  run::set_up_compute(options.threads > 0 ? options.threads
                                          : run::default_threads(comm::ranks_on_this_machine(world.group())));
  return world;
}

World join(char** argv, const JoinOptions& options) {
  run::prepare_process(argv);
  return join(options);
}

}  // namespace syncopate
