#include "syncopate/train/control.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace syncopate::train {

void Control::evaluated(double loss) {
  if (loss < best_) {
    best_ = loss;
    waited_ = since_cut_ = 0;
    return;
  }
  ++waited_;
  if (options_.plateau_factor < 1 && ++since_cut_ >= options_.plateau_patience) {
    rate_factor_ *= options_.plateau_factor;
    since_cut_ = 0;
  }
}

double Control::seconds() const {
  return seconds_before_ + (options_.clock ? options_.clock() : watch_.seconds());
}

nlohmann::ordered_json Control::state() const {
  nlohmann::ordered_json best;  // null before the first evaluation: JSON has no infinity
  if (std::isfinite(best_)) best = best_;
  return {{"seconds", seconds()},
          {"best", best},
          {"waited", waited_},
          {"since_cut", since_cut_},
          {"rate_factor", rate_factor_}};
}

void Control::restore(const nlohmann::ordered_json& state) {
  seconds_before_ = state.at("seconds");
  saved_at_ = seconds();
  if (!state.at("best").is_null()) best_ = state.at("best");
  waited_ = state.at("waited");
  since_cut_ = state.at("since_cut");
  rate_factor_ = state.at("rate_factor");
}

}  // namespace syncopate::train
