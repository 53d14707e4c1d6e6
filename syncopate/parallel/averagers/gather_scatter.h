#pragma once

#include "syncopate/parallel/averager.h"

namespace syncopate::parallel {

/// Every rank's tensor gathered at rank 0, summed there in rank order, and scattered back: the slow baseline
/// that people write first. Blocks in `start`; rank 0 carries all the traffic.
class GatherScatter : public Averager {
 public:
  explicit GatherScatter(comm::Group& group) : group_(group) {}
  comm::Pending start(Piece piece) override;

 private:
  comm::Group& group_;
};

}  // namespace syncopate::parallel
