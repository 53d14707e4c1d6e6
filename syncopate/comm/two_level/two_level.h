#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/comm/operations/waits.h"

namespace syncopate::comm {

/// Where some ranks of the run meet, which of them this one is, and where each of them runs.
struct TwoLevelPlace {
  std::string prefix;              ///< of their keys in the lifeline's store
  std::string address;             ///< numeric, at which this rank listens
  int rank = 0;                    ///< among them
  std::vector<std::string> hosts;  ///< the host of each, by any name
};

/// A group in two levels: shared memory within a host, Gloo between the first ranks of the hosts (their
/// leaders). What a collective moves to another host crosses the link once and not once per rank.
/// Messages from rank to rank go over Gloo, also within a host: who receives from any rank listens at one
/// place.
///
/// Sums: within a host in rank order, then over hosts, with two of them in either order (the same bits), with
/// more in that of Gloo's ring. So every rank has the same bits; on two hosts of which the second has one
/// rank, the last, they are the in-process group's.
///
/// Operations are carried out by two threads of the group, one on the way up to the leaders and one on the
/// way down, so that an operation may be on the link while the next is summed. A failure that the lifeline
/// reports ends every wait. Collective. Throws ConfigError, on every rank, where those of a host cannot share
/// memory.
std::unique_ptr<Group> open_two_level(std::shared_ptr<Waits> waits, TwoLevelPlace place);

/// What fits where the ranks are: shared memory for those of one host, Gloo where each has a host of its own,
/// else two levels; nobody waits for a rank that is alone. Collective, throws as above.
std::unique_ptr<Group> open_by_hosts(std::shared_ptr<Waits> waits, TwoLevelPlace place);

}  // namespace syncopate::comm
