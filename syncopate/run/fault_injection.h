#pragma once

#include <cstdint>
#include <string>

#include "syncopate/spec/fault.h"

namespace syncopate::run {

/// Thrown where a fault makes this worker leave.
struct LeavesOnPurpose {};

/// Fails this process if the fault is due here.
void inject(const spec::Fault& fault, int64_t step, const std::string& phase);

}  // namespace syncopate::run
