#include "syncopate/run/score_stages.h"

#include "syncopate/base/error.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/world.h"

namespace syncopate::run {
namespace {

constexpr std::chrono::seconds kTimeout(60);

LaunchResult launch_stages(int stages, char** argv) {
  set_thread_environment(default_threads(stages));
  LaunchOptions options;
  options.workers = stages;
  options.argv = words_of(argv);
  options.timeout = kTimeout;
  return launch(options);
}

}  // namespace

LaunchResult with_stages(int64_t stages, char** argv, const std::function<void(comm::Group* stages)>& work) {
  if (stages < 1) throw ConfigError("--stages must be 1 or more, got {}", stages);
  if (stages == 1) {
    work(nullptr);
    return {};
  }
  const World world = find_world({}, environment_of_process());
  if (world.size == 1) return launch_stages(static_cast<int>(stages), argv);
  if (world.size != stages)
    throw ConfigError("{} has started {} processes, but --stages is {}; each stage needs one", world.launcher,
                      world.size, stages);
  comm::Membership membership = join(world, "auto", kTimeout);
  try {
    work(membership.group.get());
    membership.leave();
    return {};
  } catch (const Error& error) {
    // Whoever noticed first may be a victim: the lifeline knows the cause.
    const bool told = error.code() == ExitCode::kComm &&
                      membership.lifeline->await_failure(std::chrono::milliseconds(500)).has_value();
    if (!told) membership.fail(error.what(), static_cast<int>(error.code()));
    if (world.launcher != "syncopate") throw;
    return {.exit_code = static_cast<int>(error.code())};  // the launcher reports it once
  }
}

}  // namespace syncopate::run
