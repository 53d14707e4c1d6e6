#pragma once

#include <cstdint>

namespace syncopate::optim {

/// The factor that losses in half precision are multiplied by before the backward pass, so that small
/// gradients do not underflow. Halved when a gradient overflows (that step is skipped), doubled after a
/// number of good steps. Never below 1.
class LossScale {
 public:
  /// Throws ConfigError for a start below 1, a factor not above 1 or growth after less than a step.
  explicit LossScale(double start = 65536, double factor = 2, int grow_every = 2000);

  double value() const { return value_; }
  void overflowed();  ///< a gradient was not finite: the step was skipped
  void succeeded();   ///< a step was taken
  int64_t skipped() const { return skipped_; }

  /// The state to save in a checkpoint.
  struct State {
    double value = 65536;
    double good_steps = 0;  ///< since the last change
    double skipped = 0;
  };
  State state() const;
  void restore(const State& state);  ///< throws DataError when no LossScale could have given it

 private:
  double value_;
  double factor_;
  int64_t grow_every_;
  int64_t good_steps_ = 0;
  int64_t skipped_ = 0;
};

}  // namespace syncopate::optim
