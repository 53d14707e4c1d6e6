#include "syncopate/plan/matching.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "syncopate/base/error.h"

namespace syncopate::plan {
namespace {

/// Kuhn's algorithm on sets of columns, as bits.
template <int Words>
class Matcher {
 public:
  void look_at(const float* cost, int size) {
    cost_ = cost;
    size_ = size;
    words_ = (size + 63) / 64;
  }

  /// Turns `column` into a perfect matching of costs up to `threshold`; leaves it alone where there is none.
  bool reach(float threshold, int* column) {
    threshold_ = threshold;
    built_.fill(0);
    free_.fill(0);
    for (int c = 0; c < size_; ++c) add(free_, c);
    int lone = 0;
    for (int row = 0; row < size_; ++row) {
      if (cost_[row * size_ + column[row]] <= threshold) {
        row_of_[static_cast<size_t>(column[row])] = static_cast<int16_t>(row);
        remove(free_, column[row]);
      } else {
        lone_[static_cast<size_t>(lone++)] = static_cast<int16_t>(row);
      }
    }
    for (int k = 0; k < lone; ++k) {
      seen_.fill(0);
      if (!augment(lone_[static_cast<size_t>(k)])) return false;
    }
    for (int c = 0; c < size_; ++c) column[row_of_[static_cast<size_t>(c)]] = c;
    return true;
  }

 private:
  using Set = std::array<uint64_t, Words>;
  static void add(Set& set, int k) { set[static_cast<size_t>(k / 64)] |= uint64_t{1} << (k % 64); }
  static void remove(Set& set, int k) { set[static_cast<size_t>(k / 64)] &= ~(uint64_t{1} << (k % 64)); }

  const Set& near(int row) {
    Set& set = near_[static_cast<size_t>(row)];
    if ((built_[static_cast<size_t>(row / 64)] >> (row % 64) & 1) != 0) return set;
    add(built_, row);
    const float* costs = cost_ + row * size_;
    for (int word = 0; word < words_; ++word) {
      const int end = std::min(64, size_ - word * 64);
      uint64_t bits = 0;
      for (int k = 0; k < end; ++k) bits |= static_cast<uint64_t>(costs[word * 64 + k] <= threshold_) << k;
      set[static_cast<size_t>(word)] = bits;
    }
    return set;
  }

  bool augment(int row) {
    const Set& columns = near(row);
    for (int word = 0; word < words_; ++word) {
      const auto w = static_cast<size_t>(word);
      if (const uint64_t open = columns[w] & free_[w]; open != 0) {
        const int column = word * 64 + std::countr_zero(open);
        remove(free_, column);
        row_of_[static_cast<size_t>(column)] = static_cast<int16_t>(row);
        return true;
      }
    }
    for (int word = 0; word < words_; ++word) {
      const auto w = static_cast<size_t>(word);
      while (const uint64_t open = columns[w] & ~seen_[w]) {
        const int column = word * 64 + std::countr_zero(open);
        add(seen_, column);
        if (!augment(row_of_[static_cast<size_t>(column)])) continue;
        row_of_[static_cast<size_t>(column)] = static_cast<int16_t>(row);
        return true;
      }
    }
    return false;
  }

  const float* cost_ = nullptr;
  int size_ = 0, words_ = 0;
  float threshold_ = 0;
  Set free_{}, seen_{}, built_{};
  std::array<Set, Words * 64> near_{};
  std::array<int16_t, Words * 64> row_of_{}, lone_{};
};

float slowest(const float* cost, int size, const int* column) {
  float most = 0;
  for (int row = 0; row < size; ++row) most = std::max(most, cost[row * size + column[row]]);
  return most;
}

/// No matching can be below the cheapest of any row or column.
float lower_bound(const float* cost, int size) {
  thread_local std::vector<float> by_column;
  by_column.assign(cost, cost + size);
  float least = 0;
  for (int row = 0; row < size; ++row) {
    const float* costs = cost + row * size;
    float cheapest = costs[0];
    for (int k = 0; k < size; ++k) {
      cheapest = std::min(cheapest, costs[k]);
      by_column[static_cast<size_t>(k)] = std::min(by_column[static_cast<size_t>(k)], costs[k]);
    }
    least = std::max(least, cheapest);
  }
  for (int k = 0; k < size; ++k) least = std::max(least, by_column[static_cast<size_t>(k)]);
  return least;
}

template <int Words>
float improve(const float* cost, int size, int* column) {
  float now = slowest(cost, size, column);
  const float least = lower_bound(cost, size);
  if (now <= least) return now;
  thread_local Matcher<Words> matcher;  // large
  matcher.look_at(cost, size);
  if (matcher.reach(least, column)) return least;
  while (matcher.reach(std::nextafter(now, 0.F), column)) now = slowest(cost, size, column);
  return now;
}

}  // namespace

float improve_matching(const float* cost, int size, int* column) {
  if (size <= 64) return improve<1>(cost, size, column);
  if (size <= 256) return improve<4>(cost, size, column);
  check(size <= 1024, "a stage of more than 1,024 replicas");
  return improve<16>(cost, size, column);
}

}  // namespace syncopate::plan
