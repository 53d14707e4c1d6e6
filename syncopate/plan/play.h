#pragma once

#include "syncopate/plan/plan.h"

namespace syncopate::plan {

/// An iteration of a layout event by event (sim/predict.h), as `train --placement` would run it: gpipe, ddp
/// over the replicas. 0 where no profile says what it is made of, or it would take long.
double played_out(const Request& request, const Shape& shape, const Problem& problem, const Layout& layout);

}  // namespace syncopate::plan
