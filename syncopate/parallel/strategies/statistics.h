#pragma once

#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/state.h"

namespace syncopate::parallel {

/// What a replica has gathered beside its parameters (an optimizer's moments, a batch norm's running
/// statistics), replaced by its weighted mean over ranks. All of it are averages over past steps and some may
/// not fall below zero, so a mean that arrives late replaces them as it is: what they moved meanwhile is left
/// out.
class Statistics {
 public:
  /// `aside`: the mean travels in a copy while training goes on; else in place.
  Statistics(std::vector<StateTensor> tensors, bool aside);

  /// `weight` of this rank: those of all ranks add up to 1.
  void start(comm::Group& group, double weight);
  void apply();  ///< waits
  /// What travels aside, after waiting for it.
  std::vector<StateTensor> state();

 private:
  struct Item {
    StateTensor mine;
    at::Tensor travelling;
    comm::Pending pending;
  };
  std::vector<Item> items_;
  bool aside_;
};

}  // namespace syncopate::parallel
