#pragma once

#include <string>
#include <vector>

namespace syncopate::comm {

/// Which ranks of a group are on which host. Hosts are numbered in the order of their first ranks.
class Hosts {
 public:
  explicit Hosts(const std::vector<std::string>& names);  ///< the host of each rank

  int count() const { return static_cast<int>(ranks_.size()); }
  int widest() const;                                                      ///< the most ranks that one has
  int of(int rank) const { return host_[static_cast<size_t>(rank)]; }      ///< a rank's host
  int place(int rank) const { return place_[static_cast<size_t>(rank)]; }  ///< its number among that host's
  int ranks_on(int host) const { return static_cast<int>(ranks_[static_cast<size_t>(host)].size()); }
  const std::string& name(int rank) const { return names_[static_cast<size_t>(rank)]; }

 private:
  std::vector<std::string> names_;
  std::vector<int> host_, place_;
  std::vector<std::vector<int>> ranks_;  ///< of each host, ascending
};

}  // namespace syncopate::comm
