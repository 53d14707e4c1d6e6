#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/comm/shm/shared_memory.h"
#include "syncopate/parallel/staleness_histogram.h"
#include "syncopate/parallel/strategies/free_running.h"

namespace syncopate::parallel {

/// Replicas whose parameters lie in one memory: each computes and updates at its own pace, without locks, and
/// reads what the others have written so far (Niu et al., 2011). Gradients are each process's own.
///
/// On a GPU that all use, the parameters lie in its memory. Where processes cannot share that, they lie in
/// the host's: a replica takes a copy before it computes and adds what its update changed.
class Hogwild : public FreeRunning {
 public:
  struct Options {
    bool share_state = false;   ///< one optimizer state for all, in shared memory too; false: each its own
    bool through_host = false;  ///< as where device memory cannot be shared, though it could be: for tests
  };

  /// `group` must outlive the strategy.
  Hogwild(comm::Group& group, Options options);

  Traits traits() const override {
    return {.optimizers_differ = !options_.share_state, .counts_apart = true};
  }
  void start(Replica& replica) override;
  void open(Replica& replica, int64_t first, int64_t last) override;
  std::optional<int64_t> take(bool stop) override;
  Update step(Replica& replica, const StepContext& context) override;
  int64_t close(Replica& replica) override;
  std::vector<std::vector<int64_t>> staleness() override;
  Settled settle(Replica& replica) override;
  std::vector<StateTensor> state() override;
  void resumed(Replica& replica) override;

 private:
  void place_in(const at::Tensor& memory, Replica& replica, const std::vector<at::Tensor>& arrays,
                bool copies);
  void read(Replica& replica);  ///< what the others have written; nothing to do in shared memory

  comm::Group& group_;
  Options options_;
  StalenessHistogram staleness_;  ///< of this worker alone
  std::shared_ptr<comm::SharedMemory> memory_;
  at::Tensor copied_from_;        ///< the host's parameters, when this replica works on a copy
  at::Tensor before_;             ///< the copy as it was taken
  int64_t first_ = 0, last_ = 0;  ///< tickets of the section
  int64_t seen_ = 0;              ///< updates that the parameters at hand hold
  int64_t steps_before_ = 0;      ///< the optimizer's, before the first update here
};

}  // namespace syncopate::parallel
