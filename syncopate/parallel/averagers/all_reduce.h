#pragma once

#include <utility>

#include "syncopate/parallel/averager.h"

namespace syncopate::parallel {

class AllReduce : public Averager {
 public:
  explicit AllReduce(comm::Group& group, bool into_common = false)
      : group_(group), into_common_(into_common) {}
  comm::Pending start(Piece piece) override {
    if (piece.in_use.defined()) {
      return group_.sum_rows_into(std::move(piece.into), std::move(piece.tensor), std::move(piece.in_use),
                                  std::move(piece.rows));
    }
    if (piece.into.defined()) return group_.sum_into(std::move(piece.into), std::move(piece.tensor));
    return group_.all_reduce(std::move(piece.tensor), comm::Op::kSum);
  }

  bool sums_in_place() const override { return true; }
  bool sums_into_common() const override { return into_common_; }

 private:
  comm::Group& group_;
  bool into_common_;
};

}  // namespace syncopate::parallel
