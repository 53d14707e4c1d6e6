#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "syncopate/lifeline/lifeline.h"
#include "syncopate/lifeline/server.h"

namespace syncopate::lifeline {

/// How the workers of a run find each other.
struct RendezvousPoint {
  enum class Kind {
    kServed,   ///< another process (our launcher) serves at `address`
    kAddress,  ///< rank 0 serves at `address`
    kFile,     ///< one machine: rank 0 serves on loopback and writes port and key into `file`
    kAgent,    ///< torchrun's agent keeps a store at `address`: rank 0 serves at that host and says its port
               ///< there
  };
  Kind kind = Kind::kServed;
  Address address;
  std::string key;  ///< what all know; made up where rank 0 serves by file or agent, and none is given
  std::filesystem::path file;  ///< kFile
  std::string topic;           ///< kAgent: distinguishes restarts of the same job
};

/// An external key-value store: all that a rendezvous needs of torchrun's agent.
class AgentStore {
 public:
  virtual ~AgentStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key) = 0;  ///< waits for the key
};
using OpenAgentStore =
    std::function<std::unique_ptr<AgentStore>(const Address& address, std::chrono::milliseconds timeout)>;

/// A rank's connection to the run; the server is null if another process serves.
struct Connection {
  std::unique_ptr<LifelineServer> server;
  std::shared_ptr<Lifeline> lifeline;
};

/// Who comes to a rendezvous.
struct Attendant {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{20000};
  Claims claims{};                                 ///< what must be alike on all ranks
  /// At rank 0: somebody was turned away, or has fallen silent; at rank 1: rank 0 has. May be empty
  std::function<void(const std::string&)> note{};
};

/// Every rank has a lifeline when this returns; throws CommError when that takes longer than the timeout, or
/// RefusedError. `open_store` is needed for kAgent alone.
Connection rendezvous(const RendezvousPoint& point, const Attendant& who,
                      const OpenAgentStore& open_store = {});

}  // namespace syncopate::lifeline
