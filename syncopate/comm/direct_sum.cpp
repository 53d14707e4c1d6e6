#include "syncopate/comm/direct_sum.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace syncopate::comm {
namespace {

class DirectSum : public Pending::Work {
 public:
  DirectSum(Group& group, at::Tensor tensor, int tag) : tensor_(std::move(tensor)) {
    const at::Tensor mine = tensor_.clone();
    for (int peer = 0; peer < group.size(); ++peer) {
      parts_.push_back(peer == group.rank() ? mine : at::empty_like(mine));
      if (peer != group.rank()) pending_.push_back(group.receive(parts_.back(), peer, tag));
    }
    for (int peer = 0; peer < group.size(); ++peer) {
      if (peer != group.rank()) pending_.push_back(group.send(mine, peer, tag));
    }
  }

  void wait() override {
    for (Pending& each : pending_) each.wait();
    tensor_.zero_();
    for (const at::Tensor& part : parts_) tensor_.add_(part);
  }

 private:
  at::Tensor tensor_;
  std::vector<at::Tensor> parts_;  ///< by rank
  std::vector<Pending> pending_;
};

}  // namespace

Pending sum_directly(Group& group, at::Tensor tensor, int tag) {
  if (group.size() == 1) return {};
  return Pending(std::make_unique<DirectSum>(group, std::move(tensor), tag));
}

}  // namespace syncopate::comm
