// The scheduler against a plain annealer that is given a long run, on generated networks. Seeds 1 to 3
// of each kind served to tune the search: take later ones to test it.
//   build/bench/plan [moves of the annealer] [networks of each kind]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "syncopate/base/clock.h"
#include "syncopate/base/rng.h"
#include "syncopate/plan/search.h"

namespace {

using namespace syncopate;
using namespace syncopate::plan;

enum class Kind { kRandom, kRegions, kNoisyRegions };

/// 64 devices: every pair its own link, or regions of random sizes with links of their own, exact or not.
Problem make(Kind kind, uint64_t seed) {
  constexpr int kStages = 8, kReplicas = 8, kDevices = kStages * kReplicas, kMost = 16;
  Rng rng(mix_key(seed, static_cast<int>(kind)));
  const int regions = 4 + static_cast<int>(rng.below(8));
  std::vector<size_t> region(kDevices);
  for (size_t& each : region) each = rng.below(static_cast<uint64_t>(regions));
  std::vector<std::pair<double, double>> between(kMost * kMost);  // ms, Gbit/s
  for (size_t a = 0; a < kMost; ++a) {
    for (size_t b = a; b < kMost; ++b) {
      between[a * kMost + b] = between[b * kMost + a] =
          a == b ? std::pair{1 + 5 * rng.uniform(), 2 + 8 * rng.uniform()}
                 : std::pair{5 + 200 * rng.uniform(), 0.1 * std::pow(20, rng.uniform())};
    }
  }
  Problem problem{.stages = kStages,
                  .replicas = kReplicas,
                  .pairs = Pairs(kDevices),
                  .speed = std::vector<double>(kDevices, 1.0),
                  .gradient_gb = std::vector<double>(kStages, 0.65),
                  .cut_gb = std::vector<double>(kStages - 1, 0.4712),
                  .work = std::vector<StageWork>(kStages)};
  for (int a = 0; a < kDevices; ++a) {
    for (int b = 0; b < a; ++b) {
      auto [ms, gbit] = between[region[static_cast<size_t>(a)] * kMost + region[static_cast<size_t>(b)]];
      if (kind == Kind::kRandom) {
        ms = 1 + 250 * rng.uniform();
        gbit = 0.1 * std::pow(100, rng.uniform());
      } else if (kind == Kind::kNoisyRegions) {
        ms *= 0.8 + 0.4 * rng.uniform();
        gbit *= 0.8 + 0.4 * rng.uniform();
      }
      problem.pairs.at(a, b) = problem.pairs.at(b, a) = {ms / 1e3, 8 / gbit};
    }
  }
  return problem;
}

/// Swaps any two devices, from a random layout, under a temperature that falls from a tenth of the cost.
double annealed(const Problem& problem, uint64_t seed, int64_t moves) {
  Layout layout = random_layout(problem, seed);
  Rng rng(mix_key(seed, 5));
  double now = evaluate(problem, layout).total_s, best = now;
  const double scale = now;
  for (int64_t k = 0; k < moves; ++k) {
    const double temperature =
        scale * 0.1 * std::pow(1e-4, static_cast<double>(k) / static_cast<double>(moves));
    const size_t a = rng.below(layout.device.size()), b = rng.below(layout.device.size());
    std::swap(layout.device[a], layout.device[b]);
    const double cost = evaluate(problem, layout).total_s;
    if (cost > now && rng.uniform() >= std::exp((now - cost) / temperature)) {
      std::swap(layout.device[a], layout.device[b]);
      continue;
    }
    now = cost;
    best = std::min(best, now);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t moves = argc > 1 ? std::atoll(argv[1]) : 5'000'000;
  const uint64_t networks = argc > 2 ? static_cast<uint64_t>(std::atoll(argv[2])) : 3;
  fmt::print(
      "| network | ours, best of 3 seeds | worst | s | annealer | s | worst against annealer "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const auto& [kind, name] : {std::pair{Kind::kRandom, "random"},
                                   {Kind::kRegions, "regions"},
                                   {Kind::kNoisyRegions, "noisy regions"}}) {
    for (uint64_t seed = 1; seed <= networks; ++seed) {
      const Problem problem = make(kind, seed);
      double best = 1e300, worst = 0;
      Stopwatch watch;
      for (uint64_t k = 1; k <= 3; ++k) {
        const double cost = search(problem, {.seed = k}).cost.total_s;
        best = std::min(best, cost);
        worst = std::max(worst, cost);
      }
      const double ours_s = watch.restart() / 3;
      const double rival = annealed(problem, seed, moves);
      fmt::print("| {} {} | {:.3f} | {:.3f} | {:.1f} | {:.3f} | {:.1f} | {:+.1f} % |\n", name, seed, best,
                 worst, ours_s, rival, watch.seconds(), 100 * (worst / rival - 1));
      std::fflush(stdout);
    }
  }
}
