#include "syncopate/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "syncopate/base/quantile.h"

namespace syncopate::report {
namespace {

/// The continued fraction of the incomplete beta function, by Lentz's method (Thompson and Barnett 1986).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto guarded = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / guarded(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    result *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    result *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return result;
}

/// The regularised incomplete beta function I_x(a, b) (DLMF 8.17).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on the near side of the mean.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// P(T > t) for t >= 0.
double upper_tail(double t, double freedom) {
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
}

}  // namespace

double student_quantile(double p, double freedom) {
  if (!(p > 0 && p < 1) || !(freedom > 0)) return kUnknown;
  if (p == 0.5) return 0;
  if (p < 0.5) return -student_quantile(1 - p, freedom);
  const double tail = 1 - p;
  double low = 0, high = 1;
  while (upper_tail(high, freedom) > tail && high < 1e300) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double middle = (low + high) / 2;
    (upper_tail(middle, freedom) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

namespace {

/// 97.5 %, for an interval of 95 %; the same few numbers of seeds are asked for again and again.
double two_sided_95(int64_t freedom) {
  static const std::vector<double> kFew = [] {
    std::vector<double> table(64, kUnknown);
    for (size_t i = 1; i < table.size(); ++i) table[i] = student_quantile(0.975, static_cast<double>(i));
    return table;
  }();
  if (freedom < static_cast<int64_t>(kFew.size())) return kFew[static_cast<size_t>(freedom)];
  return student_quantile(0.975, static_cast<double>(freedom));
}

}  // namespace

Estimate estimate(std::vector<double> values) {
  Estimate result;
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++result.n;
  }
  if (result.n > 0) result.mean = sum / static_cast<double>(result.n);
  if (result.n > 1) {
    double squares = 0;
    for (const double value : values) {
      if (std::isfinite(value)) squares += (value - result.mean) * (value - result.mean);
    }
    result.sd = std::sqrt(squares / static_cast<double>(result.n - 1));
    const double half = two_sided_95(result.n - 1) * result.sd / std::sqrt(static_cast<double>(result.n));
    result.low = result.mean - half;
    result.high = result.mean + half;
  }
  result.values = std::move(values);
  return result;
}

std::optional<int64_t> seeds_needed(double mean, double sd) {
  if (!std::isfinite(mean) || !std::isfinite(sd) || mean == 0) return std::nullopt;
  constexpr double kFourInFive = 0.8416;  // the normal quantile of 80 %
  const auto decides = [&](int64_t n) {
    return (two_sided_95(n - 1) + kFourInFive) * sd / std::sqrt(static_cast<double>(n)) < std::abs(mean);
  };
  if (!decides(kMostSeeds)) return std::nullopt;
  int64_t low = 2, high = kMostSeeds;  // two are never counted on; t / sqrt(n) falls with n
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (decides(middle) ? high : low) = middle;
  }
  return high;
}

Difference paired_difference(const std::vector<double>& differences, bool higher_is_better,
                             double resolution) {
  const Estimate all = estimate(differences);
  Difference result{.mean = all.mean, .sd = all.sd, .low = all.low, .high = all.high, .n = all.n};
  if (all.n < 2) return result;
  result.same = all.mean == 0 && all.sd == 0;
  if (result.same) return result;
  // Numbers that differ by rounding alone have no spread either.
  const double least = std::max(resolution, 1e-9 * std::abs(all.mean));
  const bool real = all.sd > least;
  if (!real) {
    result.sd = least;
    const double half = two_sided_95(all.n - 1) * least / std::sqrt(static_cast<double>(all.n));
    result.low = all.mean - half;
    result.high = all.mean + half;
  }
  result.enough = all.n > 2 && (real || resolution > 0);
  result.decided = result.enough && (result.low > 0 || result.high < 0);
  if (result.decided) result.better = (all.mean > 0) == higher_is_better;
  if (!result.decided) result.seeds_needed = seeds_needed(all.mean, result.sd);
  return result;
}

double chance_of(const Difference& difference) {
  if (!difference.enough || !(difference.sd > 0)) return 1;
  const double n = static_cast<double>(difference.n);
  return 2 * upper_tail(std::abs(difference.mean) * std::sqrt(n) / difference.sd, n - 1);
}

std::vector<bool> stand_together(const std::vector<double>& chances) {
  std::vector<size_t> order(chances.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return chances[a] < chances[b]; });
  std::vector<bool> stands(chances.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (chances[order[i]] * static_cast<double>(order.size() - i) > 0.05) break;
    stands[order[i]] = true;
  }
  return stands;
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double quantile(std::vector<double> values, double share) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values.empty() ? kUnknown : syncopate::quantile(std::move(values), share);
}

std::vector<bool> pareto_front(const std::vector<std::pair<double, double>>& points) {
  std::vector<size_t> order;
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(points[i].first) && std::isfinite(points[i].second)) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return points[a] > points[b]; });
  std::vector<bool> front(points.size());
  double best = -std::numeric_limits<double>::infinity();
  for (size_t at = 0; at < order.size();) {
    // Of points with the same first, those with the largest second; twins stand on the front together.
    const auto& [first, second] = points[order[at]];
    const bool leads = second > best;
    size_t next = at;
    for (; next < order.size() && points[order[next]].first == first; ++next) {
      if (leads && points[order[next]].second == second) front[order[next]] = true;
    }
    best = std::max(best, second);
    at = next;
  }
  return front;
}

}  // namespace syncopate::report
