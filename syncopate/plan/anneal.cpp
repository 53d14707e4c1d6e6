#include "syncopate/plan/anneal.h"

#include <algorithm>
#include <cmath>

namespace syncopate::plan {
namespace {

/// One of `bound` numbers, by the upper half of `bits`.
int pick(uint64_t bits, int bound) {
  return static_cast<int>(((bits >> 32) * static_cast<uint64_t>(bound)) >> 32);
}

/// How many temperatures worse a move may be: -log of a uniform number, by the lowest bits.
double patience(uint64_t bits) {
  constexpr size_t kSize = 1024;
  static const std::vector<float> table = [] {
    std::vector<float> all;
    for (size_t k = 0; k < kSize; ++k)
      all.push_back(static_cast<float>(-std::log((static_cast<double>(k) + 0.5) / kSize)));
    return all;
  }();
  return table[bits % kSize];
}

}  // namespace

void Best::offer(const Board& board) {
  if (!places.empty() && board.cost() >= cost * kLess) return;
  places = board.places();
  cost = board.cost();
}

void Best::offer(const Best& other) {
  if (places.empty() || other.cost < cost * kLess) *this = other;
}

Best Annealer::anneal(const std::vector<int>& places, const Schedule& schedule) {
  Board board(tables_, places, schedule.mean);
  Best best;
  best.offer(board);
  const double scale = board.cost();
  constexpr int kSteps = 256;
  // It takes time with the square of the devices.
  const int many = std::max(1, problem_.devices() / 64);
  const int reorder_every = problem_.devices() <= 16 ? 32 : 3000 * many * many;
  int until_reorder = reorder_every;
  for (int step = 0; step < kSteps && !spent_(); ++step) {
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
  return best;
}

void Annealer::move(Board& board, double temperature, double weight) {
  const int replicas = problem_.replicas;
  const uint64_t bits = rng_.next();
  const int a =
      bits % 4 == 0 ? board.slowest_stage() * replicas + pick(bits, replicas) : pick(bits, problem_.places());
  const auto idle = [&](int b) { return board.stage_of(a) == board.stage_of(b) || board.alike(a, b); };
  uint64_t more = rng_.next();
  int b = pick(more, board.size());
  constexpr int kTries = 4;
  for (int k = 1; k < kTries && idle(b); ++k) {
    more = rng_.next();
    b = pick(more, board.size());
  }
  if (idle(b)) return;
  const double most = board.cost() + weight * board.mean() + temperature * patience(more);
  if (const int length = stretch(board, a, b, bits); length > 1) {
    moves_ += length - 1;
    board.exchange_stretches(a, b, length, weight, most);
  } else if (board.look(a, b, weight, most) <= most) {
    board.take();
  }
}

/// How long the stretches of pipelines are that change places: mostly one device.
int Annealer::stretch(const Board& board, int a, int b, uint64_t bits) const {
  constexpr uint64_t kOneIn = 4;
  const int p = board.stage_of(a), q = board.stage_of(b);
  const int most = std::min({std::abs(p - q), problem_.stages - std::max(p, q), Board::kLongest});
  if ((bits >> 8) % kOneIn != 0 || most < 2) return 1;
  return 2 + static_cast<int>((bits >> 16) % 1024) % (most - 1);
}

void Annealer::descend(Board& board) {
  constexpr int kMost = 256;  // devices; it takes time with the square of them, and again for every round
  bool better = problem_.devices() <= kMost;
  while (better && !spent_()) {
    better = false;
    for (int a = 0; a < problem_.places(); ++a) {
      for (int b = (a / problem_.replicas + 1) * problem_.replicas; b < board.size(); ++b) {
        if (board.alike(a, b)) continue;
        ++moves_;
        const double most = board.cost() * kLess;
        if (board.look(a, b, 0, most) > most) continue;
        board.take();
        better = true;
      }
    }
    if (better) board.reorder();
  }
}

}  // namespace syncopate::plan
