#pragma once

#include <array>
#include <cstdint>

namespace syncopate::emulation {

/// How late packets were: counts by powers of 2^(1/8) of a microsecond, and those beyond a bound.
class Lateness {
 public:
  /// `latency_ns`: of the way that it took.
  void add(int64_t late_ns, int64_t latency_ns);
  /// In milliseconds; the middle of the class in which that share of all is reached, within 5 %.
  double quantile(double share) const;
  double max_ms() const { return static_cast<double>(max_ns_) * 1e-6; }
  double share_beyond() const {
    return total_ == 0 ? 0 : static_cast<double>(beyond_) / static_cast<double>(total_);
  }
  uint64_t total() const { return total_; }

 private:
  static constexpr int kPerOctave = 8;
  std::array<uint64_t, 32 * kPerOctave> counts_{};
  uint64_t total_ = 0, beyond_ = 0;
  int64_t max_ns_ = 0;
};

}  // namespace syncopate::emulation
