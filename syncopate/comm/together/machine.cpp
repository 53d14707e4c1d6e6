#include "syncopate/comm/together/machine.h"

#include <ATen/ATen.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "syncopate/base/hash.h"
#include "syncopate/base/process.h"

namespace syncopate::comm {

std::string machine_id() {
  // In a lab each host has its own name, on one machine.
  std::string machine = ::getenv("SYNCOPATE_LAB") == nullptr ? host_name() : std::string();
  std::ifstream boot("/proc/sys/kernel/random/boot_id");  // tells machines of one name apart
  std::string id;
  if (std::getline(boot, id)) machine += id;
  return machine;
}

std::string host_id() {
  const char* const host = ::getenv("SYNCOPATE_LAB_HOST");
  return host == nullptr ? machine_id() : machine_id() + "/" + host;
}

namespace {

struct Inhabitant {
  int64_t home = 0, process = 0;
};

/// Everybody's, by rank.
std::vector<Inhabitant> gather(Group& group, const std::string& home) {
  const at::Tensor mine = at::empty({2}, at::kLong);
  int64_t* const own = mine.data_ptr<int64_t>();
  own[0] = static_cast<int64_t>(checksum(home));
  own[1] = ::getpid();
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < group.size(); ++rank) all.push_back(at::zeros({2}, at::kLong));
  group.all_gather(all, mine).wait();
  std::vector<Inhabitant> inhabitants;
  for (const at::Tensor& each : all)
    inhabitants.push_back({each.data_ptr<int64_t>()[0], each.data_ptr<int64_t>()[1]});
  return inhabitants;
}

}  // namespace

Neighbours neighbours(Group& group) {
  const std::vector<Inhabitant> all = gather(group, machine_id());
  const int64_t home = all[static_cast<size_t>(group.rank())].home;
  Neighbours here;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Inhabitant& each = all[rank];
    if (each.home != home) continue;
    ++here.ranks;
    if (rank < static_cast<size_t>(group.rank())) ++here.before;
    const auto process = static_cast<pid_t>(each.process);
    if (std::find(here.processes.begin(), here.processes.end(), process) == here.processes.end())
      here.processes.push_back(process);
  }
  return here;
}

bool on_one_host(Group& group) {
  const std::vector<Inhabitant> all = gather(group, host_id());
  return std::all_of(all.begin(), all.end(),
                     [&](const Inhabitant& each) { return each.home == all.front().home; });
}

}  // namespace syncopate::comm
