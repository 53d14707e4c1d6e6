#pragma once

#include <cstdint>
#include <functional>

#include "syncopate/comm/group.h"
#include "syncopate/run/launch.h"

namespace syncopate::run {

/// Calls `work` here, with null; or, with several stages, in a process for each of them, with their group.
/// The processes are started here unless a launcher has started them. Throws Error.
LaunchResult with_stages(int64_t stages, char** argv, const std::function<void(comm::Group* stages)>& work);

}  // namespace syncopate::run
