#include "syncopate/plan/tables.h"

#include <algorithm>
#include <functional>

namespace syncopate::plan {
namespace {

/// A kind for each size; sizes within a percent are one kind, and there are few kinds.
struct Kinds {
  std::vector<double> size;  ///< the largest of each kind
  std::vector<size_t> of;
};

Kinds kinds_of(const std::vector<double>& sizes) {
  constexpr size_t kMost = 8;
  std::vector<double> sorted = sizes;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  Kinds kinds;
  for (double width = 0;; width = width == 0 ? 0.01 : 2 * width) {
    kinds.size.clear();
    for (const double size : sorted) {
      if (kinds.size.empty() || size < kinds.size.back() * (1 - width)) kinds.size.push_back(size);
    }
    if (kinds.size.size() <= kMost) break;
  }
  for (const double size : sizes) {
    size_t kind = 0;
    while (kind + 1 < kinds.size.size() && kinds.size[kind + 1] >= size) ++kind;
    kinds.of.push_back(kind);
  }
  return kinds;
}

bool same(const Pair& a, const Pair& b) { return a.delay_s == b.delay_s && a.s_per_gb == b.s_per_gb; }

/// Whether a layout's cost stays when two devices exchange their places.
bool alike(const Problem& problem, int a, int b) {
  const Pairs& pairs = problem.pairs;
  if (problem.speed[at(a)] != problem.speed[at(b)] || !same(pairs.at(a, b), pairs.at(b, a))) return false;
  for (int other = 0; other < pairs.devices(); ++other) {
    if (other == a || other == b) continue;
    if (!same(pairs.at(a, other), pairs.at(b, other)) || !same(pairs.at(other, a), pairs.at(other, b)))
      return false;
  }
  return true;
}

template <typename Cell>
std::vector<float> table(int devices, const Cell& cell) {
  std::vector<float> result(at(devices) * at(devices), 0.F);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from != to) result[at(from) * at(devices) + at(to)] = static_cast<float>(cell(from, to));
    }
  }
  return result;
}

}  // namespace

Tables::Tables(const Problem& problem) : problem_(problem) {
  const Pairs& pairs = problem.pairs;
  const Kinds gradients = kinds_of(problem.gradient_gb), cuts = kinds_of(problem.cut_gb);
  for (const double gb : gradients.size) {
    const double shard = gb * problem.gradient.bits / 32 / problem.replicas;
    exchange_.push_back(table(problem.devices(), [&](int from, int to) {
      const Pair &there = pairs.at(from, to), &back = pairs.at(to, from);
      return there.delay_s + back.delay_s + shard * (there.s_per_gb + back.s_per_gb);
    }));
  }
  for (const double gb : cuts.size) {
    const auto busy_there = [&](int from, int to) {
      const double rate = pairs.at(from, to).s_per_gb;
      return busy_s(problem.forward, gb, rate);
    };
    const auto busy_back = [&](int from, int to) {
      const double rate = pairs.at(to, from).s_per_gb;
      return busy_s(problem.backward, gb, rate);
    };
    link_.push_back(table(problem.devices(), [&](int from, int to) {
      return pairs.at(from, to).delay_s + pairs.at(to, from).delay_s + busy_there(from, to) +
             busy_back(from, to);
    }));
    link_to_.push_back(table(problem.devices(), [&](int to, int from) {
      return link_.back()[at(from) * at(problem.devices()) + at(to)];
    }));
    there_.push_back(table(problem.devices(), busy_there));
    back_.push_back(table(problem.devices(), busy_back));
  }
  exchange_kind_ = gradients.of;
  link_kind_ = cuts.of;
  for (const StageWork& work : problem.work) {
    even_work_ = even_work_ && work.forward_s == problem.work.front().forward_s &&
                 work.backward_s == problem.work.front().backward_s;
  }
  std::vector<int> firsts;
  for (int device = 0; device < problem.devices(); ++device) {
    const auto first =
        std::find_if(firsts.begin(), firsts.end(), [&](int other) { return alike(problem, device, other); });
    twin_.push_back(first == firsts.end() ? device : *first);
    if (first == firsts.end()) firsts.push_back(device);
  }
}

}  // namespace syncopate::plan
