#pragma once

#include <optional>
#include <string_view>

#include "syncopate/network/topology.h"

namespace syncopate::network {

/// One of the five networks of DT-FM (Yuan et al., NeurIPS 2022), with the figures of its scheduler; 64
/// devices each. Nothing for another name.
std::optional<Topology> preset(std::string_view name);

}  // namespace syncopate::network
