#include "syncopate/run/probe/settling.h"

#include <algorithm>
#include <cstddef>

namespace syncopate::run {

void Settling::add(double rate) { rates_.push_back(rate); }

std::vector<double> Settling::last() const {
  const auto count = std::min(rates_.size(), static_cast<size_t>(needed_));
  return {rates_.end() - static_cast<std::ptrdiff_t>(count), rates_.end()};
}

double Settling::spread() const {
  const std::vector<double> slots = last();
  if (slots.empty()) return 1;
  const auto [least, most] = std::minmax_element(slots.begin(), slots.end());
  return *most > 0 ? (*most - *least) / *most : 1;
}

bool Settling::settled() const { return rates_.size() > static_cast<size_t>(needed_) && spread() < kAlike; }

double Settling::rate() const {
  if (settled()) {
    const std::vector<double> slots = last();
    double sum = 0;
    for (const double each : slots) sum += each;
    return sum / static_cast<double>(slots.size());
  }
  // What came in the later half of the time; a slot in which nothing came at all was a stall.
  std::vector<double> slots(rates_.begin() + static_cast<std::ptrdiff_t>(rates_.size() / 2), rates_.end());
  std::erase(slots, 0.0);
  if (slots.empty()) return 0;
  std::nth_element(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2), slots.end());
  return slots[slots.size() / 2];
}

}  // namespace syncopate::run
