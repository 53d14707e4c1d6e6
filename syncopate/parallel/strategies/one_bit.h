#pragma once

#include <memory>
#include <vector>

#include "syncopate/optim/adamw.h"
#include "syncopate/parallel/averagers/coded.h"
#include "syncopate/parallel/slice.h"
#include "syncopate/parallel/strategies/row_exchange.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// 1-bit Adam (Tang et al., 2021). While warming up, steps are another strategy's. Then the second moment is
/// frozen: Adam has become momentum with a rate of its own for each element, and the momentum can be
/// exchanged by its signs, with error feedback on both ways.
///
/// What is exchanged is the momentum over the root of the second moment, which is the update itself: its
/// elements are of one size, so that one scale serves a bucket. That root counts as no less than 1 % of its
/// mean over the parameter, so that an element that has hardly seen a gradient does not leap when it sees
/// one; a parameter that has seen none at all stays where it is.
///
/// Embedding tables that are exchanged by rows (`Model::row_tables`) go on with ordinary Adam, their rows
/// exchanged in 8 bits with error feedback: a word that is first read after the warm-up must still be learnt.
/// Clipping is by the root of the sum of the ranks' squared norms, since nobody knows the norm of the sum.
class OneBit : public Strategy {
 public:
  struct Options {
    int64_t warmup = 1;  ///< steps; at least one
    bool error_feedback = true;
  };

  /// `group` must outlive the strategy. The replica's optimizer must be AdamW.
  OneBit(comm::Group& group, std::unique_ptr<Strategy> warming, Options options);
  void start(Replica& replica) override;
  void before_backward(Replica& replica, const StepContext& context, bool last_micro) override;
  Update step(Replica& replica, const StepContext& context) override;
  std::vector<StateTensor> state() override;

 private:
  bool frozen() const { return *frozen_at_.data_ptr<int64_t>() > 0; }
  void freeze(Replica& replica);
  void weigh(const Replica& replica);
  /// All ranks' share in the norm of the gradient; not finite on every rank when it is not on one.
  double agreed_norm(const Replica& replica, double scale);
  void exchange_and_update(Replica& replica, const StepContext& context, double scale, Update& update);

  comm::Group& group_;
  std::unique_ptr<Strategy> warming_;
  Options options_;
  optim::AdamW* adam_ = nullptr;
  Coded signs_, rows_;  ///< of dense parameters and of tables
  std::vector<std::unique_ptr<RowExchange>> tables_;
  std::vector<Slice> dense_;  ///< all but the tables
  std::vector<Slice> idle_;   ///< parameters that have seen no gradient
  at::Tensor frozen_at_;      ///< one number: optimizer steps when it froze; 0: not yet
  at::Tensor weights_;        ///< 1 / root of the second moment, as frozen
  bool compressing_ = false;  ///< this step
};

}  // namespace syncopate::parallel
