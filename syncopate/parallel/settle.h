#pragma once

#include "syncopate/comm/group.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// Which buffers (batch norms' statistics) the one model has, where ranks' may differ.
enum class Buffers {
  kMean,        ///< the ranks' mean; of what has none, such as a count, rank 0's
  kOfRankZero,  ///< for who broadcasts rank 0's before every step
};

/// Ranks may differ in what their batch norms have seen.
bool buffers_differ(const Replica& replica, const comm::Group& replicas);

/// Makes every replica, its buffers too, the model that is evaluated or is the result. A caller that goes on
/// training puts back what it had. Collective.
Settled settle(Strategy& strategy, Replica& replica, comm::Group& replicas, Buffers buffers);

/// While one lives every replica is that model; then training goes on with what it had.
class AsSettled {
 public:
  AsSettled(Strategy& strategy, Replica& replica, comm::Group& replicas, Buffers buffers);  ///< collective
  ~AsSettled();
  AsSettled(const AsSettled&) = delete;
  AsSettled& operator=(const AsSettled&) = delete;
  const std::string& model() const { return settled_.model; }  ///< which model it is, for the record

 private:
  std::vector<at::Tensor> tensors_, own_;
  Settled settled_;
};

}  // namespace syncopate::parallel
