#include "syncopate/comm/together/members.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace syncopate::comm {

std::vector<int> members(Group& group, int color, int key) {
  const at::Tensor mine = at::empty({2}, at::kLong);
  mine[0].fill_(color);
  mine[1].fill_(key);
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < group.size(); ++rank) all.push_back(at::empty({2}, at::kLong));
  group.all_gather(all, mine).wait();
  std::vector<std::pair<int64_t, int>> alike;
  for (int rank = 0; rank < group.size(); ++rank) {
    const int64_t* theirs = all[static_cast<size_t>(rank)].data_ptr<int64_t>();
    if (theirs[0] == color) alike.emplace_back(theirs[1], rank);
  }
  std::sort(alike.begin(), alike.end());
  std::vector<int> ranks;
  for (const auto& [its_key, rank] : alike) ranks.push_back(rank);
  return ranks;
}

int place_among(const std::vector<int>& members, int rank) {
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

}  // namespace syncopate::comm
