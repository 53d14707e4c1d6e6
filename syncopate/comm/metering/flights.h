#pragma once

#include <vector>

namespace syncopate::comm {

/// From one moment to another, in seconds of one clock.
struct Span {
  double begin = 0, end = 0;
};

/// Seconds that lie in at least one of them.
double covered(std::vector<Span> spans);

/// Seconds that lie in one of `flights` and in none of `blocked`: exchange that went on while its worker did
/// something else.
double hidden(const std::vector<Span>& flights, const std::vector<Span>& blocked);

}  // namespace syncopate::comm
