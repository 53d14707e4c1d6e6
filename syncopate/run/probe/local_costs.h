#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/sim/profile.h"

namespace syncopate::run {

/// What exchanges cost on this machine beside links: two ranks over Gloo on loopback, here threads of this
/// process. Takes about half a second. Throws CommError where loopback cannot be used.
sim::LocalCosts measure_local_costs();

struct CodecSpeedOptions {
  int64_t elements = 1 << 22;  ///< of the array that is packed
  double ratio = 0.01;         ///< top-k, random-k
  int64_t rank = 4;            ///< power-sgd
};

/// How fast these codecs (spec::codec_names()) pack and unpack here, kept errors included where a codec feeds
/// them back: the shortest of several. Throws ConfigError for an unknown one.
std::vector<sim::CodecSpeed> codec_speeds(const std::vector<std::string>& names,
                                          const CodecSpeedOptions& options = {});

}  // namespace syncopate::run
