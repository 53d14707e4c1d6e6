#pragma once

#include <string>
#include <vector>

#include "syncopate/network/topology.h"

namespace syncopate::network {

/// What a cluster file says about two hosts or regions.
struct LinkLine {
  std::string a, b;  ///< a host's or region's name each; the same twice: inside of it
  Link there, back;  ///< from a to b, and from b to a
};

/// A topology from lines: what names hosts counts before what names a host and a region, and that before what
/// names two regions. The devices of one host share its memory unless a line names the host twice. Throws
/// ConfigError for a pair of hosts without a line, for two lines that say the same pair alike closely, and
/// for names that nothing has.
Topology assemble(std::string name, std::vector<Host> hosts, const std::vector<LinkLine>& lines);

}  // namespace syncopate::network
