#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace syncopate::emulation {

/// How late packets were: counts by powers of 2^(1/8) of a microsecond, and those beyond a bound.
class Lateness {
 public:
  static constexpr int kPerOctave = 8;
  /// `latency_ns`: of the way that it took.
  void add(int64_t late_ns, int64_t latency_ns);
  double max_ms() const { return static_cast<double>(max_ns_) * 1e-6; }
  uint64_t beyond() const { return beyond_; }
  std::span<const uint64_t> counts() const { return counts_; }  ///< by class

 private:
  std::array<uint64_t, 32 * kPerOctave> counts_{};
  uint64_t beyond_ = 0;
  int64_t max_ns_ = 0;
};

/// In milliseconds; the middle of the class in which that share of all that was counted is reached, within
/// 5 %.
double late_ms(std::span<const double> counts, double share);

}  // namespace syncopate::emulation
