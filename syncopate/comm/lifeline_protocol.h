#pragma once

#include <chrono>
#include <cstdint>

#include "syncopate/comm/failure.h"
#include "syncopate/comm/wire.h"

namespace syncopate::comm {

/// What Lifeline and LifelineServer must agree on.
inline constexpr int64_t kMagic = 0x53594e434f503101;  // changes with the protocol
inline constexpr const char* kAllJoined = "lifeline/all";

/// Often enough that silence shows well within the timeout.
std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout);

Packer pack(const Failure& failure);
Failure unpack_failure(Unpacker& fields);

Packer pack(int rank, const Status& status);

}  // namespace syncopate::comm
