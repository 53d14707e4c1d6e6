#include "syncopate/plan/share_out.h"

#include <algorithm>

namespace syncopate::plan {
namespace {

/// Every way to take `wanted` of so many of each kind; none where they are more than `most`.
class Choices {
 public:
  Choices(std::vector<int> there, int wanted, size_t most)
      : there_(std::move(there)), most_(most), taken_(there_.size()), behind_(there_.size() + 1) {
    for (size_t kind = there_.size(); kind-- > 0;) behind_[kind] = behind_[kind + 1] + there_[kind];
    choose(0, wanted);
    if (all_.size() > most_) all_.clear();
  }
  const std::vector<std::vector<int>>& all() const { return all_; }

 private:
  void choose(size_t kind, int left) {
    if (all_.size() > most_) return;
    if (kind == there_.size()) return all_.push_back(taken_);
    for (int count = std::max(0, left - behind_[kind + 1]); count <= std::min(there_[kind], left); ++count) {
      taken_[kind] = count;
      choose(kind + 1, left - count);
    }
  }

  std::vector<int> there_;
  size_t most_;
  std::vector<int> taken_, behind_;  ///< behind_: how many there are from a kind on
  std::vector<std::vector<int>> all_;
};

class Sharer {
 public:
  Sharer(const Tables& tables, const Best& start, int64_t& moves, const std::function<bool()>& spent)
      : tables_(tables),
        stages_(tables.problem().stages),
        replicas_(tables.problem().replicas),
        best_(start),
        moves_(moves),
        spent_(spent) {}

  Best run() {
    for (bool better = true; better && !spent_();) {
      better = false;
      for (int p = 0; p < stages_; ++p) {
        for (int q = p + 1; q < stages_; ++q) better = share(p, q) || better;
      }
      if (!better) break;
      Board board(tables_, best_.places);
      board.reorder();
      best_.offer(board);
    }
    return best_;
  }

 private:
  const int* stage(const std::vector<int>& places, int number) const {
    return places.data() + number * replicas_;
  }

  /// The devices of two stages, those that are alike together.
  std::vector<std::vector<int>> kinds_of(int p, int q) const {
    std::vector<std::vector<int>> kinds;
    for (const int number : {p, q}) {
      for (int k = 0; k < replicas_; ++k) {
        const int device = stage(best_.places, number)[k];
        const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                       [&](const auto& some) { return tables_.twins(some.front(), device); });
        kind == kinds.end() ? kinds.push_back({device}) : kind->push_back(device);
      }
    }
    return kinds;
  }

  float exchange(const std::vector<int>& places, int number) const {
    const int* here = stage(places, number);
    float slowest = 0;
    for (int a = 0; a < replicas_; ++a) {
      const float* row = tables_.exchange(number, here[a]);
      float sum = 0;
      for (int b = 0; b < replicas_; ++b) sum += row[here[b]];
      slowest = std::max(slowest, sum);
    }
    return slowest;
  }

  /// No pairing of the stages around a cut is faster: everybody needs a partner.
  float least(const std::vector<int>& places, int cut) const {
    const int *here = stage(places, cut), *next = stage(places, cut + 1);
    float slowest = 0;
    for (int a = 0; a < replicas_; ++a) {
      const float* row = tables_.link(cut, here[a]);
      float nearest = row[next[0]];
      for (int b = 1; b < replicas_; ++b) nearest = std::min(nearest, row[next[b]]);
      slowest = std::max(slowest, nearest);
    }
    return slowest;
  }

  /// What other stages and cuts come to, whatever p and q do.
  struct Rest {
    float exchange = 0, links = 0;
  };
  Rest rest_of(int p, int q) const {
    const Board board(tables_, best_.places);
    Rest rest;
    for (int number = 0; number < stages_; ++number) {
      if (number != p && number != q) rest.exchange = std::max(rest.exchange, board.exchange(number));
      if (number + 1 < stages_ && !touches(number, p, q)) rest.links += board.link(number);
    }
    return rest;
  }
  static bool touches(int cut, int p, int q) { return cut == p || cut == q || cut + 1 == p || cut + 1 == q; }

  /// No less than what these places cost.
  double bound(const std::vector<int>& places, int p, int q, const Rest& rest) const {
    const float slowest = std::max({rest.exchange, exchange(places, p), exchange(places, q)});
    double cost = slowest * (1 - tables_.problem().hidden_share) + rest.links;
    for (int cut = 0; cut + 1 < stages_; ++cut) {
      if (touches(cut, p, q)) cost += least(places, cut);
    }
    return cost * kRounding;
  }

  bool share(int p, int q) {
    constexpr size_t kMostWays = 6000;
    const std::vector<std::vector<int>> kinds = kinds_of(p, q);
    std::vector<int> there;
    for (const auto& kind : kinds) there.push_back(static_cast<int>(kind.size()));
    const Choices choices(there, replicas_, kMostWays);
    if (choices.all().empty() || spent_()) return false;
    const Rest rest = rest_of(p, q);
    Best found = best_;
    std::vector<int> places = best_.places;
    for (const std::vector<int>& taken : choices.all()) {
      int first = p * replicas_, second = q * replicas_;
      for (size_t kind = 0; kind < kinds.size(); ++kind) {
        for (int k = 0; k < there[kind]; ++k)
          places[at(k < taken[kind] ? first++ : second++)] = kinds[kind][at(k)];
      }
      constexpr int64_t kMovesOfABoard = 16;
      ++moves_;
      if (bound(places, p, q, rest) >= found.cost * kLess) continue;
      moves_ += kMovesOfABoard;
      found.offer(Board(tables_, places));
    }
    if (found.cost >= best_.cost * kLess) return false;
    best_ = std::move(found);
    return true;
  }

  const Tables& tables_;
  int stages_, replicas_;
  Best best_;
  int64_t& moves_;
  const std::function<bool()>& spent_;
};

}  // namespace

Best share_out(const Tables& tables, const Best& start, int64_t& moves, const std::function<bool()>& spent) {
  return Sharer(tables, start, moves, spent).run();
}

}  // namespace syncopate::plan
