#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/plan/search.h"

namespace syncopate::plan {

/// What stages need and devices have, in bytes.
struct Room {
  std::vector<double> needs{};  ///< a device of each stage
  std::vector<double> has{};    ///< each device; 0: not known, which is enough for all

  bool holds(int device, int stage) const {
    const double bytes = has[static_cast<size_t>(device)];
    return bytes == 0 || bytes >= needs[static_cast<size_t>(stage)];
  }
  double most() const;   ///< that a stage needs
  double least() const;  ///< that a stage needs
};

/// Where devices are too few: so many places need `bytes` or more, and so many devices have them.
struct Shortage {
  double bytes = 0;
  int places = 0, devices = 0;
  bool any() const { return places > devices; }
};
/// Whether every stage finds `replicas` devices that hold it, each device once.
Shortage shortage(const Room& room, int replicas);

/// A layout in which every device holds its stage, near the one given: that is made to fit, and so are a few
/// random ones; then any two devices change places while that helps. `effort` bounds the work; there must be
/// no shortage.
Found fitted(const Problem& problem, const Room& room, const Layout& layout, const Effort& effort);

}  // namespace syncopate::plan
