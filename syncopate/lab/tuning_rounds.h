#pragma once

#include <functional>
#include <string>

#include "syncopate/lab/plan.h"

namespace syncopate::lab {

/// Leads the tuning of a plan's arms: the file's values first, then finer ones, then the choice.
class TuningRounds {
 public:
  TuningRounds(const Experiment& experiment, Plan& plan) : experiment_(experiment), plan_(plan) {}

  bool over() const { return over_; }  ///< every arm has its value, or none
  bool round_ended() const;            ///< no run of this round is still to be made
  /// After a round: chooses, and adds the runs of the next; where there is none, gives the rows their values
  /// and says which. Rows of an arm that came to none end as its tuning did.
  void next(const std::function<void(const std::string&)>& say);

 private:
  void take_scores(Tuning& tuning) const;
  void conclude(const Tuning& tuning, const std::function<void(const std::string&)>& say);
  void give_up(const Tuning& tuning);

  const Experiment& experiment_;
  Plan& plan_;
  int64_t round_ = 0;
  bool over_ = plan_.tunings.empty();
};

}  // namespace syncopate::lab
