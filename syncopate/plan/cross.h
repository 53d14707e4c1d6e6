#pragma once

#include <vector>

#include "syncopate/base/rng.h"
#include "syncopate/plan/tables.h"

namespace syncopate::plan {

/// The places of a layout with stages of two others: a stretch of `one`'s pipeline stays whole, and so do the
/// stages of `other` that lose least by it. Devices that are left over fill these up, each where its exchange
/// is shortest.
std::vector<int> crossed(const Tables& tables, const std::vector<int>& one, const std::vector<int>& other,
                         Rng& rng);

}  // namespace syncopate::plan
