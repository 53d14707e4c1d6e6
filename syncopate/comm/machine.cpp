#include "syncopate/comm/machine.h"

#include <ATen/ATen.h>

#include <fstream>
#include <string>
#include <vector>

#include "syncopate/base/hash.h"
#include "syncopate/base/process.h"

namespace syncopate::comm {

int ranks_on_this_machine(Group& group) {
  std::string machine = host_name();
  std::ifstream boot("/proc/sys/kernel/random/boot_id");  // tells machines of one name apart
  std::string id;
  if (std::getline(boot, id)) machine += id;
  const at::Tensor mine = at::full({1}, static_cast<int64_t>(checksum(machine)), at::kLong);
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < group.size(); ++rank) all.push_back(at::zeros({1}, at::kLong));
  group.all_gather(all, mine).wait();
  int here = 0;
  for (const at::Tensor& theirs : all) here += at::equal(theirs, mine) ? 1 : 0;
  return here;
}

}  // namespace syncopate::comm
