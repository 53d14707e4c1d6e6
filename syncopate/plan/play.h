#pragma once

#include "syncopate/plan/plan.h"

namespace syncopate::plan {

/// Whether an iteration of this shape can be played out: a profile says what it is made of, and it takes not
/// too long.
bool can_play(const Request& request, const Shape& shape);

/// An iteration of a layout event by event (sim/predict.h), as `train --placement` would run it: gpipe, ddp
/// over the replicas. 0 where it cannot be played.
double played_out(const Request& request, const Shape& shape, const Problem& problem, const Layout& layout);

}  // namespace syncopate::plan
