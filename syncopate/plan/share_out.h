#pragma once

#include <functional>

#include "syncopate/plan/anneal.h"

namespace syncopate::plan {

/// Shares the devices of two stages out anew, in every way that makes a difference, while that helps: one
/// step where exchanges of two devices would have to go through worse layouts. For networks of regions, in
/// which many devices are alike; stages that could be shared out in too many ways are left alone. Adds to
/// `moves` what it takes, and ends early once `spent`.
Best share_out(const Tables& tables, const Best& start, int64_t& moves, const std::function<bool()>& spent);

}  // namespace syncopate::plan
