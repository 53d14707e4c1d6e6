#include "syncopate/comm/together/hosts.h"

#include <map>

namespace syncopate::comm {

Hosts::Hosts(const std::vector<std::string>& names) {
  std::map<std::string, int> numbers;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const int host = numbers.try_emplace(names[rank], static_cast<int>(ranks_.size())).first->second;
    if (host == count()) ranks_.emplace_back();
    std::vector<int>& here = ranks_[static_cast<size_t>(host)];
    host_.push_back(host);
    place_.push_back(static_cast<int>(here.size()));
    here.push_back(static_cast<int>(rank));
  }
}

Seating Hosts::seating() const {
  if (size() == 1) return Seating::kAlone;
  if (count() == 1) return Seating::kOneHost;
  return count() == size() ? Seating::kOneEach : Seating::kTwoLevels;
}

int Hosts::first_row(int host) const {
  int row = 0;
  for (int before = 0; before < host; ++before) row += ranks_on(before);
  return row;
}

}  // namespace syncopate::comm
