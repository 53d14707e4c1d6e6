#pragma once

#include <string>

#include "syncopate/report/advice/claims.h"

// What is told beside a verdict. Empty: nothing.
namespace syncopate::report {

/// At most so many arms or figures of one kind in a paragraph; the table has the rest.
inline constexpr size_t kMostTold = 4;

/// The arms that the verdict does not name, and the caveats.
std::string paragraph_of(const Claims& claims, const Advice& verdict);

/// What readers must know before they act on it, whatever the verdict is.
std::string caveats_of(const ArmGroup& group);

}  // namespace syncopate::report
