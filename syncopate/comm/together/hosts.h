#pragma once

#include <string>
#include <vector>

namespace syncopate::comm {

/// How the ranks of a group exchange best.
enum class Seating {
  kAlone,     ///< one rank
  kOneHost,   ///< shared memory
  kOneEach,   ///< the network alone
  kTwoLevels  ///< both
};

/// Which ranks of a group are on which host. Hosts are numbered in the order of their first ranks.
class Hosts {
 public:
  explicit Hosts(const std::vector<std::string>& names);  ///< the host of each rank

  int count() const { return static_cast<int>(ranks_.size()); }
  int size() const { return static_cast<int>(host_.size()); }  ///< ranks
  Seating seating() const;
  int first_row(int host) const;  ///< of a host's ranks, where those of each host follow on the one before
  int of(int rank) const { return host_[static_cast<size_t>(rank)]; }      ///< a rank's host
  int place(int rank) const { return place_[static_cast<size_t>(rank)]; }  ///< its number among that host's
  int ranks_on(int host) const { return static_cast<int>(ranks_[static_cast<size_t>(host)].size()); }

 private:
  std::vector<int> host_, place_;
  std::vector<std::vector<int>> ranks_;  ///< of each host, ascending
};

}  // namespace syncopate::comm
