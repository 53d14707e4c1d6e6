#pragma once

#include <string>

namespace syncopate {

std::string program_version();  ///< "0.1.0"
std::string program_commit();   ///< what it was built from: "c56613e0a1b2", "…-dirty"; empty: not known

}  // namespace syncopate
