#pragma once

#include <vector>

namespace syncopate::run {

/// Rates of slots of equal length, as they come in: whether they have settled, and at what.
class Settling {
 public:
  static constexpr double kAlike = 0.04;  ///< slots of a rate that has settled differ by less

  /// So many slots in a row must be alike.
  explicit Settling(int slots) : needed_(slots) {}
  void add(double rate);
  bool settled() const;
  double rate() const;    ///< over the last slots that count; 0: nothing came
  double spread() const;  ///< of those, relative to the largest

 private:
  std::vector<double> last() const;
  int needed_;
  std::vector<double> rates_{};
};

}  // namespace syncopate::run
