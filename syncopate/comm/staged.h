#pragma once

#include <memory>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

enum class Stage {
  kDevices,    ///< tensors that are not on the host
  kEverything  ///< host tensors too, through a copy: tests run so where there is no device
};

/// For transports that read and write host memory only. Device tensors are copied to pinned host memory when
/// an operation starts, after the work already queued on their stream; wait() copies the result back, before
/// any work queued later. The result of an operation that is never waited for does not reach the device.
/// Groups split from it are staged too.
std::unique_ptr<Group> staged(std::unique_ptr<Group> inner, Stage what = Stage::kDevices);

}  // namespace syncopate::comm
