#pragma once

#include <chrono>
#include <cstdint>

#include "syncopate/lifeline/claims.h"
#include "syncopate/lifeline/failure.h"
#include "syncopate/lifeline/wire.h"

namespace syncopate::lifeline {

/// What Lifeline and LifelineServer must agree on.
inline constexpr int64_t kMagic = 0x53594e434f503102;  // changes with the protocol
inline constexpr const char* kAllJoined = "lifeline/all";

/// Often enough that silence shows well within the timeout.
std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout);
/// Who did nothing for longer, though it wakes with every beat, stood still itself, perhaps with the whole
/// machine: others' silence then says nothing.
std::chrono::milliseconds standstill(std::chrono::milliseconds beat);

/// Who shows that it knows the key: each side proves it for the other's random number.
struct Introduction {
  std::string of_worker, of_server;  ///< random numbers
  int64_t rank = 0, size = 0;
  std::string worker_proof(const std::string& key) const;
  std::string server_proof(const std::string& key) const;
};

Packer pack_proof(const std::string& proof, const Claims& claims);
Claims unpack_claims(Unpacker& fields);

Packer pack(const Failure& failure);
Failure unpack_failure(Unpacker& fields);

Packer pack(int rank, const Status& status);

}  // namespace syncopate::lifeline
