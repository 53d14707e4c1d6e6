#include "syncopate/plan/search.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/plan/anneal.h"
#include "syncopate/plan/cross.h"
#include "syncopate/plan/share_out.h"
#include "syncopate/plan/starts.h"

namespace syncopate::plan {
namespace {

void sort(std::vector<Best>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Best& a, const Best& b) { return a.cost < b.cost; });
}

class Searcher {
 public:
  Searcher(const Problem& problem, const Effort& effort)
      : problem_(problem),
        effort_(effort),
        tables_(problem),
        annealer_(tables_, mix_key(effort.seed, 1), [this] { return spent(); }) {}

  Found run() {
    const std::vector<Best> starts = cluster_starts();
    best_ = starts.front();
    const bool choices = problem_.stages > 1 || problem_.devices() > problem_.places();
    if (choices && effort_.budget_s > 0) {
      for (double moves = usual_moves() / 16; !spent(); moves *= 2) round(starts, moves);
    } else if (choices) {
      round(starts, effort_.share * usual_moves());
    }
    Board board(tables_, best_.places);
    constexpr int kExactStages = 15;
    board.reorder(kExactStages);
    if (effort_.share > 0) annealer_.descend(board);
    const Layout layout = board.layout();
    return {layout, evaluate(problem_, layout), annealer_.moves()};
  }

 private:
  double usual_moves() const {
    const double share = std::clamp(problem_.devices(), 8, 64) / 64.0;
    return 5e6 * share * std::sqrt(share);
  }
  bool spent() const { return effort_.budget_s > 0 && watch_.seconds() >= effort_.budget_s; }

  std::vector<Best> cluster_starts() {
    const double gb =
        problem_.cut_gb.empty() ? problem_.gradient_gb.front() / problem_.replicas : problem_.cut_gb.front();
    std::vector<int> devices = by_nearness(problem_.pairs, gb);
    std::vector<Best> starts;
    // Where devices may stay unused, it matters where one begins.
    const bool spare = problem_.devices() > problem_.places();
    const int turns = spare && effort_.share > 0 ? std::min(4, problem_.devices()) : 1;
    for (int turn = 0; turn < turns; ++turn) {
      for (std::vector<int>& places : tiled(devices, problem_.stages, problem_.replicas)) {
        Board board(tables_, std::move(places));
        board.reorder();
        starts.emplace_back().offer(board);
      }
      std::rotate(devices.begin(), devices.begin() + problem_.devices() / turns, devices.end());
    }
    sort(starts);
    return starts;
  }

  /// Many devices would have too far to cool down.
  Schedule warm(double moves) const {
    if (many()) return {.hot = 0.003, .mean_hot = 0.3, .moves = static_cast<int64_t>(moves)};
    return {.hot = 0.015, .mean_hot = 1, .moves = static_cast<int64_t>(moves)};
  }
  bool many() const { return problem_.devices() > 256; }

  Best grown(const std::vector<int>& places, const Schedule& schedule) {
    Best found = annealer_.anneal(places, schedule);
    best_.offer(found);
    return found;
  }

  /// Grows layouts from the best clusters and from random ones, and crosses those.
  void round(const std::vector<Best>& starts, double moves) {
    if (moves < 1) return;
    const auto begin = static_cast<double>(annealer_.moves());
    std::vector<Best> grown_ones;
    const auto clusters = std::min<size_t>(starts.size(), 4);
    for (size_t k = 0; k < clusters; ++k)
      grown_ones.push_back(
          grown(starts[k].places, warm((many() ? 0.3 : 0.05) * moves / static_cast<double>(clusters))));
    const bool few = problem_.devices() <= 16;
    const int from_random = few ? 12 : many() ? 2 : 8;
    for (int k = 0; k < from_random; ++k) {
      const std::vector<int64_t> order = permutation(problem_.devices(), annealer_.rng().next());
      Schedule schedule{.moves = static_cast<int64_t>((many() ? 0.4 : 0.6) * moves / from_random)};
      // Neither mean leads to the best everywhere.
      if (!few && k % 2 == 1) schedule.mean = Mean::kPlain;
      // The mean leads away from a best layout that is uneven: half of many starts hardly look at it.
      if (few && k % 2 == 1) schedule.mean_hot = schedule.mean_cold = 0.001;
      grown_ones.push_back(grown({order.begin(), order.end()}, schedule));
    }
    constexpr double kLast = 0.05;
    if (problem_.stages > 1) cross(grown_ones, begin + (1 - kLast) * moves, (many() ? 0.1 : 0.02) * moves);
    if (problem_.stages > 1 && !many()) {
      constexpr size_t kSharedOut = 4;
      for (size_t k = 0; k < std::min(kSharedOut, grown_ones.size()); ++k)
        best_.offer(share_out(tables_, grown_ones[k], annealer_.moves(), [this] { return spent(); }));
    }
    grown(best_.places, warm(kLast * moves));
  }

  /// Crosses the best of `all`, until so many moves are made, `each` for a child. A child takes the place of
  /// the worse parent or of the worst of all, if it is better, unless it is there already.
  void cross(std::vector<Best>& all, double until, double each) {
    constexpr size_t kMost = 8;
    sort(all);
    const auto same = [](const Best& a, const Best& b) { return a.cost >= b.cost * kLess; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    all.resize(std::min(all.size(), kMost));
    Rng& rng = annealer_.rng();
    while (all.size() > 1 && static_cast<double>(annealer_.moves()) + each <= until && !spent()) {
      const size_t a = std::min(rng.below(all.size()), rng.below(all.size()));  // rather a good one
      size_t b = rng.below(all.size() - 1);
      if (b >= a) ++b;
      Best child = grown(crossed(tables_, all[a].places, all[b].places, rng), warm(each));
      if (std::any_of(all.begin(), all.end(),
                      [&](const Best& one) { return std::abs(one.cost / child.cost - 1) < 1 - kLess; }))
        continue;
      Best& worse = all[std::max(a, b)];
      Best& loser = child.cost < worse.cost ? worse : all.back();
      if (child.cost < loser.cost) loser = std::move(child);
      sort(all);
    }
  }

  const Problem& problem_;
  const Effort effort_;
  const Stopwatch watch_;
  const Tables tables_;
  Annealer annealer_;
  Best best_;
};

}  // namespace

Layout random_layout(const Problem& problem, uint64_t seed) {
  const std::vector<int64_t> order = permutation(problem.devices(), seed);
  return {problem.stages, problem.replicas, {order.begin(), order.begin() + problem.places()}};
}

double random_cost(const Problem& problem, int count, uint64_t seed) {
  double sum = 0;
  for (int k = 0; k < count; ++k)
    sum += evaluate(problem, random_layout(problem, mix_key(seed, 2, k))).total_s;
  return sum / count;
}

Found search(const Problem& problem, const Effort& effort) {
  if (problem.replicas > kMostReplicas)
    throw ConfigError("a stage can have 1,024 replicas at most, not {}; take more stages", problem.replicas);
  return Searcher(problem, effort).run();
}

}  // namespace syncopate::plan
