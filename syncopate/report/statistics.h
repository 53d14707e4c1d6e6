#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What a handful of seeds says, by Student's t. A number that is not known is NaN.
namespace syncopate::report {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// The quantile of Student's t distribution: P(T <= t) = p with `freedom` degrees of freedom, which need not
/// be whole.
double student_quantile(double p, double freedom);

/// Values of a few runs, and what they say about the mean of all that could be made.
struct Estimate {
  std::vector<double> values{};  ///< one for each run, NaN where it has none
  double mean = kUnknown;
  double sd = kUnknown;                    ///< of the sample (n - 1); NaN of fewer than two
  double low = kUnknown, high = kUnknown;  ///< the 95 % interval of the mean; NaN of fewer than two
  int64_t n = 0;                           ///< values that are known

  bool known() const { return n > 0; }
  double half() const { return (high - low) / 2; }
};

Estimate estimate(std::vector<double> values);

/// What seeds say about a difference, each seed's own: what it adds to both sides falls out.
struct Difference {
  double mean = kUnknown, sd = kUnknown, low = kUnknown, high = kUnknown;
  int64_t n = 0;                          ///< seeds in common
  bool enough = false;                    ///< seeds that may decide: three or more
  bool decided = false;                   ///< they are, and the interval does not hold 0
  bool same = false;                      ///< no difference in any of at least two seeds
  std::optional<bool> better{};           ///< of one that is decided
  std::optional<int64_t> seeds_needed{};  ///< that would probably decide one of this size and spread
  std::string against{};                  ///< the id of the arm that it is to

  double half() const { return (high - low) / 2; }
};

/// The most seeds that are worth naming: a difference that needs more is nobody's concern.
inline constexpr int64_t kMostSeeds = 1000;

/// Of differences, one for each seed that both sides have. `resolution` is the least step of a score: seeds
/// that happen to agree more closely than it tell nothing, so the spread counts as no smaller.
Difference paired_difference(const std::vector<double>& differences, bool higher_is_better,
                             double resolution = 0);

/// The smallest number of seeds, from three on, whose interval leaves 0 out four times in five, where mean
/// and spread are truly these; nothing above kMostSeeds, or where the spread is not known.
std::optional<int64_t> seeds_needed(double mean, double sd);

/// How often chance alone would make a difference as large as this one; 1 where the seeds are too few.
double chance_of(const Difference& difference);

/// Which of several claims stand together at 5 % (Holm 1979), each with the chance that it is none.
std::vector<bool> stand_together(const std::vector<double>& chances);

/// The median; NaN of none. Numbers that are NaN are left out.
double median(std::vector<double> values);

/// The value below which a share of them lies, on a straight line between neighbours; NaN of none. Numbers
/// that are NaN are left out.
double quantile(std::vector<double> values, double share);

/// Which points no other beats: larger is better on both axes. A point with a NaN is never one of them.
std::vector<bool> pareto_front(const std::vector<std::pair<double, double>>& points);

}  // namespace syncopate::report
