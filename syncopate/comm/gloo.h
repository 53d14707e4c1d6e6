#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "syncopate/comm/group.h"
#include "syncopate/lifeline/lifeline.h"

namespace syncopate::comm {

/// A group over c10d's Gloo, among the ranks of the lifeline's run. A failure that the lifeline reports
/// ends every wait at once with its message. Each operation may take `timeout`, counted from the wait.
/// `interface_address` is the numeric address this rank listens at; empty: the one that reaches the
/// lifeline's server. Throws CommError when the ranks do not find each other in time.
std::unique_ptr<Group> open_gloo(std::shared_ptr<lifeline::Lifeline> lifeline,
                                 std::chrono::milliseconds timeout,
                                 const std::string& interface_address = "");

}  // namespace syncopate::comm
