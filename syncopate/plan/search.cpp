#include "syncopate/plan/search.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/plan/board.h"
#include "syncopate/plan/starts.h"

namespace syncopate::plan {
namespace {

/// One of `bound` numbers, by the upper half of `bits`.
int pick(uint64_t bits, int bound) {
  return static_cast<int>(((bits >> 32) * static_cast<uint64_t>(bound)) >> 32);
}

/// How many temperatures worse a move may be: -log of a uniform number, by the lowest bits.
double patience(uint64_t bits) {
  constexpr size_t kSize = 4096;
  static const std::vector<double> table = [] {
    std::vector<double> all;
    for (size_t k = 0; k < kSize; ++k) all.push_back(-std::log((static_cast<double>(k) + 0.5) / kSize));
    return all;
  }();
  return table[bits % kSize];
}

/// Less than rounding could make it; of equals the first, most regular one stays.
constexpr double kLess = 1 - 1e-6;

/// The best board seen.
struct Best {
  std::vector<int> places{};
  double cost = 0;
  void offer(const Board& board) {
    if (!places.empty() && board.cost() >= cost * kLess) return;
    places = board.places();
    cost = board.cost();
  }
  void offer(const Best& other) {
    if (places.empty() || other.cost < cost * kLess) *this = other;
  }
};

void sort(std::vector<Best>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Best& a, const Best& b) { return a.cost < b.cost; });
}

struct Schedule {
  double hot = 0.2, cold = 1e-5;  ///< temperatures, as shares of the cost
  /// What the mean weighs beside the slowest: much at first, for max() is flat where most layouts are.
  double mean_hot = 20, mean_cold = 0.05;
  int64_t moves = 0;
};

Schedule warm(int64_t moves) { return {.hot = 0.005, .mean_hot = 0.5, .moves = moves}; }

class Searcher {
 public:
  Searcher(const Problem& problem, const Effort& effort)
      : problem_(problem), effort_(effort), tables_(problem), rng_(mix_key(effort.seed, 1)) {}

  Found run() {
    const std::vector<Best> starts = cluster_starts();
    best_ = starts.front();
    const bool choices = problem_.stages > 1 || problem_.devices() > problem_.places();
    if (choices && effort_.budget_s > 0) {
      for (int64_t moves = usual_moves() / 16; !spent(); moves *= 2) round(starts, moves);
    } else if (choices) {
      round(starts, static_cast<int64_t>(effort_.share * static_cast<double>(usual_moves())));
    }
    Board board(tables_, best_.places);
    constexpr int kExactStages = 15;
    board.reorder(kExactStages);
    if (effort_.share > 0) descend(board);
    const Layout layout = board.layout();
    return {layout, evaluate(problem_, layout), moves_};
  }

 private:
  int64_t usual_moves() const {
    const double share = std::clamp(problem_.devices(), 8, 64) / 64.0;
    return static_cast<int64_t>(6'000'000 * share * std::sqrt(share));
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

  /// From the best clusters and from random layouts; the best of these go on.
  void round(const std::vector<Best>& starts, int64_t moves) {
    if (moves < 1) return;
    std::vector<Best> found;
    const auto clusters = std::min<size_t>(starts.size(), 4);
    for (size_t k = 0; k < clusters; ++k)
      found.push_back(anneal(starts[k].places, warm(part(moves, 0.15, clusters))));
    // Few devices need many starts, many devices long ways.
    const int from_random = problem_.devices() <= 16 ? 12 : 6;
    for (int k = 0; k < from_random; ++k) {
      const std::vector<int64_t> order = permutation(problem_.devices(), rng_.next());
      Schedule schedule{.moves = part(moves, 0.6, static_cast<size_t>(from_random))};
      // The mean leads away from a best layout that is uneven: half of many starts hardly look at it.
      if (problem_.devices() <= 16 && k % 2 == 1) schedule.mean_hot = schedule.mean_cold = 0.001;
      found.push_back(anneal({order.begin(), order.end()}, schedule));
    }
    sort(found);
    const auto same = [](const Best& a, const Best& b) { return a.cost >= b.cost * kLess; };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    const auto few = std::min<size_t>(found.size(), 3);
    found.resize(few);
    for (const Best& each : found) anneal(each.places, warm(part(moves, 0.15, few)));
    anneal(best_.places, warm(part(moves, 0.1, 1)));
  }

  static int64_t part(int64_t moves, double share, size_t among) {
    return static_cast<int64_t>(static_cast<double>(moves) * share / static_cast<double>(among));
  }

  Best anneal(const std::vector<int>& places, const Schedule& schedule) {
    Board board(tables_, places);
    Best best;
    best.offer(board);
    const double scale = board.cost();
    constexpr int kSteps = 256;
    // It takes time with the square of the devices.
    const int many = std::max(1, problem_.devices() / 64);
    const int reorder_every = problem_.devices() <= 16 ? 32 : 3000 * many * many;
    int until_reorder = reorder_every;
    for (int step = 0; step < kSteps && !spent(); ++step) {
      const double way = static_cast<double>(step) / (kSteps - 1);
      const double temperature = scale * schedule.hot * std::pow(schedule.cold / schedule.hot, way);
      const double weight = schedule.mean_hot * std::pow(schedule.mean_cold / schedule.mean_hot, way);
      for (int64_t k = 0; k <= schedule.moves / kSteps; ++k) {
        if (--until_reorder == 0) {
          board.reorder();
          until_reorder = reorder_every;
        } else {
          move(board, temperature, weight);
        }
        if (board.cost() < best.cost) best.offer(board);
      }
      moves_ += schedule.moves / kSteps + 1;
    }
    Board last(tables_, best.places);
    last.reorder();
    descend(last);
    best.offer(last);
    best_.offer(best);
    return best;
  }

  void move(Board& board, double temperature, double weight) {
    const int replicas = problem_.replicas;
    const uint64_t bits = rng_.next();
    const int a = bits % 4 == 0 ? board.slowest_stage() * replicas + pick(bits, replicas)
                                : pick(bits, problem_.places());
    uint64_t more = rng_.next();
    int b = pick(more, board.size());
    constexpr int kTries = 4;
    for (int k = 1; k < kTries && (a / replicas == b / replicas || board.alike(a, b)); ++k) {
      more = rng_.next();
      b = pick(more, board.size());
    }
    if (a / replicas == b / replicas || board.alike(a, b)) return;
    const double most = board.cost() + weight * board.mean() + temperature * patience(more);
    if (board.look(a, b, weight, most) <= most) board.take();
  }

  /// Exchanges any two places while that helps.
  void descend(Board& board) const {
    constexpr int kMost = 256;  // devices; it takes time with the square of them, and again for every round
    bool better = problem_.devices() <= kMost;
    while (better && !spent()) {
      better = false;
      for (int a = 0; a < problem_.places(); ++a) {
        for (int b = (a / problem_.replicas + 1) * problem_.replicas; b < board.size(); ++b) {
          const double most = board.cost() * kLess;
          if (board.alike(a, b) || board.look(a, b, 0, most) > most) continue;
          board.take();
          better = true;
        }
      }
      if (better) board.reorder();
    }
  }

  const Problem& problem_;
  const Effort effort_;
  const Stopwatch watch_;
  const Tables tables_;
  Rng rng_;
  Best best_;
  int64_t moves_ = 0;
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
  constexpr int kMostReplicas = 1024;
  if (problem.replicas > kMostReplicas)
    throw ConfigError("a stage can have 1,024 replicas at most, not {}; take more stages", problem.replicas);
  return Searcher(problem, effort).run();
}

}  // namespace syncopate::plan
