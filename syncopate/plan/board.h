#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/plan/problem.h"

namespace syncopate::plan {

/// A problem's costs of every two devices, looked up instead of computed. Stages (and cuts) of nearly one
/// size share a table, which is that of the largest.
class Tables {
 public:
  explicit Tables(const Problem& problem);
  const Problem& problem() const { return problem_; }
  /// Row of device `from`: seconds of exchange with each other device of a stage.
  const float* exchange(int stage, int from) const { return row(exchange_, exchange_kind_, stage, from); }
  /// Row of device `from`, in `stage`: forward to and backward from each device of the next.
  const float* link(int stage, int from) const { return row(link_, link_kind_, stage, from); }
  /// Only the seconds that a link is busy, in the busier direction.
  const float* busy(int stage, int from) const { return row(busy_, link_kind_, stage, from); }
  /// Whether all stages are alike, so that their order is that of a path.
  bool even() const { return exchange_.size() <= 1 && link_.size() <= 1 && even_work_; }

 private:
  const float* row(const std::vector<std::vector<float>>& tables, const std::vector<size_t>& kinds, int stage,
                   int from) const {
    return tables[kinds[static_cast<size_t>(stage)]].data() +
           static_cast<size_t>(from) * static_cast<size_t>(problem_.devices());
  }
  const Problem& problem_;
  std::vector<std::vector<float>> exchange_, link_, busy_;
  std::vector<size_t> exchange_kind_, link_kind_;
  bool even_work_ = true;
};

/// Groups of devices in the order of their stages, with replicas paired at every cut: its cost is kept up to
/// date while devices change places, and pairs with them. Devices that have no place wait behind the last
/// stage, in places from problem.places() on.
class Board {
 public:
  Board(const Tables& tables, std::vector<int> places);

  double cost() const { return now_.cost; }  ///< evaluate(layout()).total_s, but for rounding
  double mean() const { return now_.mean; }  ///< of transfers: what the slowest hides
  const std::vector<int>& places() const { return places_; }
  Layout layout() const;
  int size() const { return static_cast<int>(places_.size()); }
  int slowest_stage() const;  ///< whose exchange takes longest
  int slowest_cut() const;    ///< the stage before it

  /// Exchanges the devices of two places of different stages; `undo` takes the last one back.
  void swap(int a, int b);
  void undo();

  /// Pairs replicas in the best way at every cut, and puts the stages along the shortest path.
  void reorder(int exact = 12);

 private:
  struct Total {
    double cost = 0, mean = 0;
  };
  struct Stage {
    float exchange = 0;  ///< slowest sum
    float slowness = 0;
  };
  struct Cut {
    float slowest = 0, busy = 0, sum = 0;
  };
  struct Undo {
    int a = -1, b = -1;
    Total total{};
    std::vector<float> sums{};
    std::vector<int> column{};
    std::vector<Stage> stage{};
    std::vector<Cut> cut{};
  };
  void recompute();
  void place(int place, int device);
  void change_stage(int stage, int place, int device);
  void repair(int stage, int row, int column);
  void measure(int stage);
  float slowness_of(int stage) const;
  Total total() const;
  float* links(int stage) { return links_.data() + static_cast<size_t>(stage) * square_; }

  const Tables& tables_;
  const Problem& problem_;
  int stages_, replicas_;
  size_t square_;  ///< replicas times replicas
  bool even_speed_;
  std::vector<int> places_;
  std::vector<float> sums_;   ///< of each place: its exchange with the others of its stage
  std::vector<float> links_;  ///< of each cut: every place before it with every place behind it
  std::vector<int> column_;   ///< of each place before a cut: the place behind it that it is paired with
  std::vector<Stage> stage_;
  std::vector<Cut> cut_;
  Total now_{};
  Undo undo_{};
};

}  // namespace syncopate::plan
