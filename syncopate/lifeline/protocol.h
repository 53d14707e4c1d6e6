#pragma once

#include <chrono>
#include <cstdint>

#include "syncopate/lifeline/failure.h"
#include "syncopate/lifeline/wire.h"

namespace syncopate::lifeline {

/// What Lifeline and LifelineServer must agree on.
inline constexpr int64_t kMagic = 0x53594e434f503101;  // changes with the protocol
inline constexpr const char* kAllJoined = "lifeline/all";

/// Often enough that silence shows well within the timeout.
std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout);

Packer pack(const Failure& failure);
Failure unpack_failure(Unpacker& fields);

Packer pack(int rank, const Status& status);

}  // namespace syncopate::lifeline
