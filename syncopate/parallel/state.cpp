#include "syncopate/parallel/state.h"

#include <ATen/ATen.h>

#include <utility>

namespace syncopate::parallel {

std::vector<StateTensor> by_parameter(const tensor::FlatParams& params,
                                      const std::vector<StateTensor>& state) {
  std::vector<StateTensor> cut;
  for (const StateTensor& each : state) {
    if (!each.laid_at) {
      cut.push_back(each);
      continue;
    }
    const int64_t begin = *each.laid_at, end = begin + each.tensor.numel();
    const auto& entries = params.entries();
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (entry->offset < begin || entry->offset + entry->size > end) continue;
      StateTensor part = each;
      part.name += "." + entry->name;
      part.tensor =
          each.tensor.narrow(0, entry->offset - begin, entry->size).view(entry->parameter.sizes().vec());
      part.laid_at.reset();
      cut.push_back(std::move(part));
    }
  }
  return cut;
}

void append(std::vector<StateTensor>& state, const std::string& prefix, std::vector<StateTensor> more) {
  for (StateTensor& each : more) {
    each.name.insert(0, prefix);
    state.push_back(std::move(each));
  }
}

}  // namespace syncopate::parallel
