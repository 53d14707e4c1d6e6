#include "syncopate/comm/together/agree.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "syncopate/base/error.h"
#include "syncopate/comm/together/broadcast_text.h"

namespace syncopate::comm {
namespace {

/// Where two descriptions first differ, from the view of `rank`; empty: nowhere.
std::string difference(const std::string& first, const std::string& mine, int rank) {
  std::istringstream theirs(first), ours(mine);
  while (theirs || ours) {
    std::string their_line, our_line;
    std::getline(theirs, their_line);
    std::getline(ours, our_line);
    if (their_line == our_line) continue;
    const auto shown = [](const std::string& line) { return line.empty() ? "nothing more" : line; };
    return fmt::format("ranks differ in what they train: rank 0 has {}, rank {} has {}; give all the same",
                       shown(their_line), rank, shown(our_line));
  }
  return {};
}

}  // namespace

void agree(Group& group, const std::string& mine, const std::string& problem) {
  const std::string first = broadcast_text(group, mine, 0);
  const std::string sentence = problem.empty() ? difference(first, mine, group.rank()) : problem;
  at::Tensor refuses = at::zeros({group.size()}, at::kLong);  // by rank
  refuses[group.rank()] = sentence.empty() ? 0 : 1;
  group.all_reduce(refuses, Op::kSum).wait();
  for (int rank = 0; rank < group.size(); ++rank) {
    if (refuses[rank].item<int64_t>() == 0) continue;
    const std::string heard = broadcast_text(group, sentence, rank);
    group.barrier();  // who throws may be gone at once: all have heard
    throw ConfigError("{}", heard);
  }
}

}  // namespace syncopate::comm
