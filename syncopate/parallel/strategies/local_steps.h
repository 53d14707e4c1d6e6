#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/parallel/averager.h"
#include "syncopate/parallel/strategies/rounds.h"
#include "syncopate/parallel/strategies/statistics.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// What happens to the moments of the workers' optimizers when their parameters come together.
enum class Moments { kKeep, kAverage, kReset };

/// What Local SGD and DiLoCo share: every worker updates by its own gradients, and now and then a fragment of
/// the model comes together, each worker weighted by the examples it stands for since the last time. Between
/// exchanges nothing is sent. An exchange may go on behind the next steps; its result is applied a fixed
/// number of steps later, so that runs repeat bit for bit.
class LocalSteps : public Strategy {
 public:
  struct Options {
    Rounds rounds;
    int64_t first = 0;  ///< the step at which workers begin to update by themselves
    Moments moments = Moments::kKeep;
  };

  Traits traits() const override {
    return {.replicas_differ = true, .optimizers_differ = true, .counts_apart = true};
  }
  void start(Replica& replica) override;
  void before_backward(Replica& replica, const StepContext& context, bool last_micro) override;
  Update step(Replica& replica, const StepContext& context) override;
  bool exchanges(int64_t step) const override;
  bool updates_locally(int64_t step) const override { return step >= options_.first; }
  void wait_for_exchanges() override;
  /// To the mean of the workers, weighted as at an exchange, with what is in flight taken as arrived.
  Settled settle(Replica& replica) override;
  std::vector<StateTensor> state() override;
  void resized(int ranks_before) override;

 protected:
  /// Arrays beside the parameters, as long as they are.
  struct Keeps {
    bool anchor = false;    ///< where the round began; differences from it travel, else the parameters do
    bool momentum = false;  ///< of an outer optimizer
    bool copy = false;      ///< the parameters as they were when the exchange started
  };
  /// One fragment of each array; undefined where it is not kept.
  struct Slices {
    at::Tensor values, anchor, momentum, copy;
    at::Tensor mean;  ///< over the workers: of the parameters, or of the anchor less the parameters
  };

  /// `before` makes the steps below options.first; null where that is 0. `group` must outlive the strategy.
  /// Throws ConfigError.
  LocalSteps(comm::Group& group, std::unique_ptr<Averager> averager, const Options& options,
             std::unique_ptr<Strategy> before);

  virtual Keeps keeps() const = 0;
  /// Whether replicas are the same after an exchange that nothing delayed.
  virtual bool exchange_makes_equal() const { return true; }
  /// The mean has arrived: leaves new values, and the anchor and momentum of the next round.
  virtual void apply(Slices slices) const = 0;

  virtual std::string model_name() const { return "average of the workers"; }  ///< after a local step

  const Options& options() const { return options_; }
  bool replicas_are_equal()
      const;  ///< the last local step ended with an exchange that made all replicas the same

 private:
  int64_t done() const;  ///< local steps
  Slices slices(const Replica& replica, size_t fragment) const;
  struct Weight {
    double mine = 1, all = 1;
    double fraction() const { return mine / all; }
  };
  /// By the examples since the last exchange; all weigh alike where there were none.
  Weight weight_of(double mine, double all) const;
  void launch(Replica& replica, size_t fragment);  ///< starts the fragment's exchange
  void arrive(size_t fragment);                    ///< waits for it: the slices' mean is one then
  void take_mean(Replica& replica);                ///< of the workers, now
  void finish(Replica& replica, size_t fragment);  ///< applies it

  comm::Group& group_;
  std::unique_ptr<Averager> averager_;
  Options options_;
  std::unique_ptr<Strategy> before_;
  std::vector<Slice> fragments_;
  std::vector<Statistics> statistics_;  ///< by fragment
  struct InFlight {
    at::Tensor sum;
    double divisor = 1;  ///< what makes it the mean
    comm::Pending pending;
  };
  std::vector<InFlight> in_flight_;  ///< by fragment
  at::Tensor done_;                  ///< int64 [1]
  at::Tensor examples_;              ///< double [fragments]: this rank's since the fragment's last exchange
  at::Tensor anchor_, momentum_, copy_;
  at::Tensor travelling_;  ///< what is summed, where that is not the parameters themselves
  at::Tensor all_;         ///< double [1]: the examples of all ranks behind the exchange that starts now
  comm::Pending all_known_;
};

/// Reads "keep", "average" or "reset"; throws ConfigError.
Moments parse_moments(const std::string& text);

}  // namespace syncopate::parallel
