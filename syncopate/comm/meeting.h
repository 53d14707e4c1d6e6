#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "syncopate/comm/lifeline.h"
#include "syncopate/comm/lifeline_server.h"

namespace syncopate::comm {

/// How the workers of a run find each other.
struct MeetingPoint {
  enum class Kind {
    kServed,   ///< somebody else (our launcher) serves at `address`
    kAddress,  ///< rank 0 serves at `address`
    kFile,     ///< one machine: rank 0 serves on loopback and writes port and key into `file`
    kAgent,    ///< torchrun's agent keeps a store at `address`: rank 0 serves at that host and says its port
               ///< there
  };
  Kind kind = Kind::kServed;
  Address address;
  std::string key;  ///< what workers show to the server; made up where rank 0 serves by file or agent
  std::filesystem::path file;  ///< kFile
  std::string topic;           ///< kAgent: distinguishes restarts of the same job
};

/// What a rank holds of the meeting point; the server is null where somebody else serves.
struct Encounter {
  std::unique_ptr<LifelineServer> server;
  std::shared_ptr<Lifeline> lifeline;
};

/// Every rank has a lifeline when this returns; throws CommError when that takes longer than `timeout`.
Encounter meet(const MeetingPoint& point, int rank, int size, std::chrono::milliseconds timeout);

/// 128 random bits in hexadecimal.
std::string random_key();

}  // namespace syncopate::comm
