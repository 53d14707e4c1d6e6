#include "syncopate/plan/order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

namespace syncopate::plan {
namespace {

/// Held and Karp: the best path over every set of places and its end.
std::vector<int> exact_path(const std::vector<float>& distance, int size) {
  const auto n = static_cast<size_t>(size);
  const size_t sets = size_t{1} << n;
  std::vector<float> best(sets * n, std::numeric_limits<float>::infinity());
  std::vector<int8_t> before(sets * n, -1);
  for (size_t place = 0; place < n; ++place) best[(size_t{1} << place) * n + place] = 0;
  for (size_t set = 1; set < sets; ++set) {
    for (size_t end = 0; end < n; ++end) {
      const float length = best[set * n + end];
      if (((set >> end) & 1) == 0 || length == std::numeric_limits<float>::infinity()) continue;
      for (size_t next = 0; next < n; ++next) {
        if (((set >> next) & 1) != 0) continue;
        const size_t there = (set | (size_t{1} << next)) * n + next;
        if (length + distance[end * n + next] < best[there]) {
          best[there] = length + distance[end * n + next];
          before[there] = static_cast<int8_t>(end);
        }
      }
    }
  }
  size_t set = sets - 1;
  const auto all = best.begin() + static_cast<std::ptrdiff_t>(set * n);
  int end = static_cast<int>(std::min_element(all, all + size) - all);
  std::vector<int> order;
  while (end >= 0) {
    order.push_back(end);
    const int previous = before[set * n + static_cast<size_t>(end)];
    set &= ~(size_t{1} << end);
    end = previous;
  }
  std::reverse(order.begin(), order.end());
  return order;
}

/// Local search on a path: turns stretches round (2-opt) and moves short ones elsewhere (Or-opt).
class Improver {
 public:
  Improver(const std::vector<float>& distance, int size, std::vector<int> order)
      : distance_(distance), size_(size), order_(std::move(order)) {}

  std::vector<int> run() {
    constexpr int kRounds = 50;  // far more than it ever needs
    for (int round = 0; round < kRounds && (turn_stretches() || move_stretches()); ++round) {
    }
    return order_;
  }

 private:
  double between(int from, int to) const {  // places in the order; beyond an end there is nothing
    if (from < 0 || to < 0 || from >= size_ || to >= size_) return 0;
    return distance_[static_cast<size_t>(order_[static_cast<size_t>(from)]) * static_cast<size_t>(size_) +
                     static_cast<size_t>(order_[static_cast<size_t>(to)])];
  }
  bool turn_stretches() {
    bool better = false;
    for (int first = 0; first < size_; ++first) {
      double forward = 0, backward = 0;
      for (int last = first + 1; last < size_; ++last) {
        forward += between(last - 1, last);
        backward += between(last, last - 1);
        const double now = between(first - 1, first) + forward + between(last, last + 1);
        const double turned = between(first - 1, last) + backward + between(first, last + 1);
        if (turned >= now * (1 - 1e-7)) continue;
        std::reverse(order_.begin() + first, order_.begin() + last + 1);
        std::swap(forward, backward);
        better = true;
      }
    }
    return better;
  }
  bool move_stretches() {
    bool better = false;
    for (int length = 1; length <= 3 && length < size_; ++length) {
      for (int first = 0; first + length <= size_; ++first) {
        const int last = first + length - 1;
        const double freed = between(first - 1, first) + between(last, last + 1) -
                             (first > 0 && last + 1 < size_ ? between(first - 1, last + 1) : 0);
        int best = -2;
        double gain = 1e-7 * freed;
        for (int after = -1; after < size_; ++after) {
          if (after >= first - 1 && after <= last) continue;
          const double paid = between(after, first) + between(last, after + 1) - between(after, after + 1);
          if (freed - paid > gain) {
            gain = freed - paid;
            best = after;
          }
        }
        if (best == -2) continue;
        const auto begin = order_.begin();
        if (best < first) {
          std::rotate(begin + best + 1, begin + first, begin + last + 1);
        } else {
          std::rotate(begin + first, begin + last + 1, begin + best + 1);
        }
        better = true;
      }
    }
    return better;
  }

  const std::vector<float>& distance_;
  int size_;
  std::vector<int> order_;
};

std::vector<int> nearest_next(const std::vector<float>& distance, int size, int first) {
  std::vector<int> order{first}, left(static_cast<size_t>(size));
  std::iota(left.begin(), left.end(), 0);
  left.erase(left.begin() + first);
  while (!left.empty()) {
    const float* row = distance.data() + static_cast<size_t>(order.back()) * static_cast<size_t>(size);
    const auto next =
        std::min_element(left.begin(), left.end(), [&](int a, int b) { return row[a] < row[b]; });
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

}  // namespace

double path_length(const std::vector<float>& distance, int size, const std::vector<int>& order) {
  double length = 0;
  for (size_t k = 0; k + 1 < order.size(); ++k)
    length += distance[static_cast<size_t>(order[k]) * static_cast<size_t>(size) +
                       static_cast<size_t>(order[k + 1])];
  return length;
}

std::vector<int> shortest_path(const std::vector<float>& distance, int size, const std::vector<int>& start,
                               int exact) {
  if (size <= exact) return exact_path(distance, size);
  std::vector<int> best = Improver(distance, size, start).run();
  double length = path_length(distance, size, best);
  constexpr int kStarts = 8;
  for (int k = 0; k < kStarts; ++k) {
    const int first = k * size / kStarts;
    const std::vector<int> other = Improver(distance, size, nearest_next(distance, size, first)).run();
    const double other_length = path_length(distance, size, other);
    if (other_length < length) {
      best = other;
      length = other_length;
    }
  }
  return best;
}

}  // namespace syncopate::plan
