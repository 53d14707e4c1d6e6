#pragma once

#include "syncopate/report/results.h"

namespace syncopate::report {

/// Which arm to use, computed from figures, differences and flags that are filled in. Says no more than the
/// seeds carry: an arm is the best choice only where the interval of its speed-up lies above one worker's,
/// even had the baseline had the cores that others kept busy, and where the interval of its difference in
/// quality leaves no loss that matters (`tolerated_loss`).
Advice advise(const Results& results);

/// A loss of quality that nobody would pay for: one point of a measure in per cent, 2 % of another.
double tolerated_loss(const Measure& measure, double baseline);

}  // namespace syncopate::report
