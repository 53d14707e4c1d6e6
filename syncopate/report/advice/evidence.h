#pragma once

#include <string>

#include "syncopate/report/advice/claims.h"

// How what the seeds say about an arm's quality is said.
namespace syncopate::report {

/// "difference −0.10 ± 0.40 points, 5 seeds", "the baseline".
std::string evidence_text(const ArmGroup& group, const ArmResult& arm);

/// Of a loss that is sure and small: "loses 0.40 points (± 0.20, 5 seeds), less than …".
std::string small_loss_text(const Claims& claims, const ArmResult& arm);

/// Of an arm that keeps its quality: "nothing lost (…)".
std::string kept_text(const Claims& claims, const ArmResult& arm);

/// How many seeds would show either that no loss matters, or that there is one: "about 4 seeds more …".
std::string needed_text(const Claims& claims, const ArmResult& arm);

}  // namespace syncopate::report
