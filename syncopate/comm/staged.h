#pragma once

#include <memory>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

enum class Stage {
  kDevices,    ///< tensors that are not on the host
  kEverything  ///< host tensors too, through a copy: tests run so where there is no device
};

/// For a transport that reads and writes the host's memory alone: tensors of a device are copied to pinned
/// memory of the host when an operation starts, after what their stream was told to do before, and what the
/// operation gave is copied back by wait(), before what that stream is told next. What is never waited for
/// never comes back to the device. Groups split from it are staged too.
std::unique_ptr<Group> staged(std::unique_ptr<Group> inner, Stage what = Stage::kDevices);

}  // namespace syncopate::comm
