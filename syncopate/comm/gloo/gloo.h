#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "syncopate/comm/group.h"
#include "syncopate/comm/operations/waits.h"

namespace syncopate::comm {

/// A group over c10d's Gloo, among the ranks of the lifeline's run. A failure that the lifeline reports
/// ends every wait at once with its message. Each operation may take `timeout`, counted from the wait.
/// `interface_address` is the numeric address this rank listens at; empty: the one that reaches the
/// lifeline's server. Throws CommError when the ranks do not find each other in time.
std::unique_ptr<Group> open_gloo(std::shared_ptr<lifeline::Lifeline> lifeline,
                                 std::chrono::milliseconds timeout,
                                 const std::string& interface_address = "");

/// Where some ranks of the run meet, and which of them this one is.
struct GlooPlace {
  std::string prefix;   ///< of their keys in the lifeline's store
  std::string address;  ///< numeric, at which this rank listens
  int rank = 0;
  int size = 1;
};

/// A group of those ranks, which waits as `waits` says.
std::unique_ptr<Group> open_gloo(std::shared_ptr<Waits> waits, GlooPlace place);

}  // namespace syncopate::comm
