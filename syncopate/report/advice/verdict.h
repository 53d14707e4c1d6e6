#pragma once

#include "syncopate/report/advice/claims.h"

namespace syncopate::report {

/// Which arm of the group to use, in one sentence; the paragraph is left empty.
Advice verdict_of(const Claims& claims);

}  // namespace syncopate::report
