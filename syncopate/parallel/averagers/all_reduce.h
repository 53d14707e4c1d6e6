#pragma once

#include <utility>

#include "syncopate/parallel/averager.h"

namespace syncopate::parallel {

class AllReduce : public Averager {
 public:
  explicit AllReduce(comm::Group& group) : group_(group) {}
  comm::Pending start(Piece piece) override {
    return group_.all_reduce(std::move(piece.tensor), comm::Op::kSum);
  }

  bool sums_in_place() const override { return true; }

 private:
  comm::Group& group_;
};

}  // namespace syncopate::parallel
