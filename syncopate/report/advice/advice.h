#pragma once

#include "syncopate/report/results.h"

namespace syncopate::report {

/// Which arm to use, computed from figures, differences and flags that are filled in. Says no more than the
/// seeds carry: an arm is the best choice only where the interval of its speed-up lies above one worker's,
/// even had the baseline had the cores that others kept busy, and where the interval of its difference in
/// quality leaves no loss that matters (`tolerated_loss`, claims.h).
Advice advise(const Results& results);

}  // namespace syncopate::report
