#include "syncopate/comm/metering/flights.h"

#include <algorithm>

namespace syncopate::comm {

double covered(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  double total = 0, until = 0;
  bool any = false;
  for (const Span& span : spans) {
    const double from = any ? std::max(span.begin, until) : span.begin;
    if (span.end <= from) continue;
    total += span.end - from;
    until = span.end;
    any = true;
  }
  return total;
}

double hidden(const std::vector<Span>& flights, const std::vector<Span>& blocked) {
  std::vector<Span> both = flights;
  both.insert(both.end(), blocked.begin(), blocked.end());
  return std::max(0.0, covered(std::move(both)) - covered(blocked));
}

}  // namespace syncopate::comm
