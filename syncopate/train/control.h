#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "syncopate/base/clock.h"

namespace syncopate::train {

struct ControlOptions {
  int64_t patience = 0;       ///< evaluations without a better loss before the run ends; 0: no end
  double plateau_factor = 1;  ///< of the learning rate after so many as `plateau_patience`; 1: off
  int64_t plateau_patience = 2;
  double time_limit = 0;            ///< seconds of the whole run, interruptions apart; 0: none
  double save_seconds = 0;          ///< between checkpoints; 0: not by the clock
  std::function<double()> clock{};  ///< seconds since this process began the run; empty: a stopwatch
};

/// What changes the course of a run while it goes on, beside its settings: a loss that gets no better in
/// evaluations, and time. Every rank has one. Evaluations give every rank the same loss, so all decide alike
/// without a word; clocks differ, so `time_is_up` and `save_is_due` are questions to put to rank 0. Part of a
/// checkpoint.
class Control {
 public:
  explicit Control(ControlOptions options) : options_(std::move(options)) {}

  void evaluated(double loss);
  bool out_of_patience() const { return options_.patience > 0 && waited_ >= options_.patience; }
  double rate_factor() const { return rate_factor_; }  ///< of what the schedule says

  bool time_is_up() const { return options_.time_limit > 0 && seconds() >= options_.time_limit; }
  bool save_is_due() const {
    return options_.save_seconds > 0 && seconds() - saved_at_ >= options_.save_seconds;
  }
  void saved() { saved_at_ = seconds(); }
  double seconds() const;  ///< of the run so far, by this rank's clock

  nlohmann::ordered_json state() const;
  void restore(const nlohmann::ordered_json& state);

 private:
  ControlOptions options_;
  Stopwatch watch_;
  double seconds_before_ = 0;  ///< until the checkpoint
  double saved_at_ = 0;        ///< when the run last did
  double best_ = std::numeric_limits<double>::infinity();
  int64_t waited_ = 0;     ///< evaluations since the best
  int64_t since_cut_ = 0;  ///< the same, or since the rate was last cut
  double rate_factor_ = 1;
};

}  // namespace syncopate::train
