#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace syncopate::sim {

/// Ranks that have operations of their own, and the place of each among them.
class Groups {
 public:
  explicit Groups(size_t ranks) : ranks_(ranks) {}

  int add(std::vector<int> ranks) {
    std::vector<int> place(ranks_, -1);
    for (size_t k = 0; k < ranks.size(); ++k) place[static_cast<size_t>(ranks[k])] = static_cast<int>(k);
    members_.push_back(std::move(ranks));
    places_.push_back(std::move(place));
    return static_cast<int>(members_.size()) - 1;
  }

  const std::vector<int>& members(int group) const { return members_[static_cast<size_t>(group)]; }
  int size(int group) const { return static_cast<int>(members(group).size()); }
  /// Of a rank; -1 outside of the group.
  int place(int group, int rank) const {
    return places_[static_cast<size_t>(group)][static_cast<size_t>(rank)];
  }
  /// The rank at a place, which may lie before the first or behind the last: places go round.
  int member(int group, int place) const {
    const int count = size(group);
    return members(group)[static_cast<size_t>((place % count + count) % count)];
  }

 private:
  size_t ranks_;  ///< of all
  std::vector<std::vector<int>> members_{}, places_{};
};

}  // namespace syncopate::sim
