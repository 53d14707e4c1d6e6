#include "syncopate/train/rank_states.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "syncopate/comm/broadcast_text.h"
#include "syncopate/train/checkpoint.h"

namespace syncopate::train {
namespace {

constexpr int kTag = 77;

/// What rank `owner` has, as seen by every rank: names, shapes and types on the host, values not yet there.
std::vector<tensor::NamedTensor> describe(comm::Group& group, const std::vector<tensor::NamedTensor>& mine,
                                          int owner) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (group.rank() == owner) {
    for (const auto& [name, tensor] : mine) {
      list.push_back({name, tensor.sizes().vec(), static_cast<int>(tensor.scalar_type())});
    }
  }
  list = nlohmann::ordered_json::parse(comm::broadcast_text(group, list.dump(), owner));
  std::vector<tensor::NamedTensor> described;
  for (const auto& each : list) {
    described.push_back({fmt::format("rank{}.{}", owner, each.at(0).get<std::string>()),
                         at::empty(each.at(1).get<std::vector<int64_t>>(),
                                   static_cast<at::ScalarType>(each.at(2).get<int>()))});
  }
  return described;
}

}  // namespace

std::vector<tensor::NamedTensor> gather_states(comm::Group& group,
                                               const std::vector<tensor::NamedTensor>& mine) {
  std::vector<tensor::NamedTensor> all;
  for (int owner = 0; owner < group.size(); ++owner) {
    const auto theirs = describe(group, mine, owner);
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (group.rank() == owner) {
        const at::Tensor copy = mine[i].tensor.contiguous().to(at::kCPU);
        if (owner == 0) {
          at::Tensor(theirs[i].tensor).copy_(copy);
        } else {
          group.send(copy, 0, kTag).wait();
        }
      } else if (group.rank() == 0) {
        group.receive(theirs[i].tensor, owner, kTag).wait();
      }
    }
    if (group.rank() == 0) all.insert(all.end(), theirs.begin(), theirs.end());
  }
  return all;
}

void scatter_states(comm::Group& group, const std::vector<tensor::NamedTensor>& saved,
                    const std::vector<tensor::NamedTensor>& mine, const std::filesystem::path& path) {
  for (int owner = 0; owner < group.size(); ++owner) {
    const auto theirs = describe(group, mine, owner);
    if (group.rank() == 0) restore_tensors(saved, theirs, path);
    for (size_t i = 0; i < theirs.size(); ++i) {
      const bool owns = group.rank() == owner;
      if (group.rank() == 0 && !owns) group.send(theirs[i].tensor, owner, kTag).wait();
      if (owns && owner != 0) group.receive(theirs[i].tensor, 0, kTag).wait();
      if (owns) at::Tensor(mine[i].tensor).copy_(theirs[i].tensor);
    }
  }
}

}  // namespace syncopate::train
