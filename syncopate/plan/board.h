#pragma once

#include <array>
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
  /// The same by its far end: row of device `to`, in the stage behind `stage`.
  const float* link_to(int stage, int to) const { return row(link_to_, link_kind_, stage, to); }
  /// Only the seconds that a link is busy, forward and backward.
  const float* busy_there(int stage, int from) const { return row(there_, link_kind_, stage, from); }
  const float* busy_back(int stage, int from) const { return row(back_, link_kind_, stage, from); }
  /// Whether it makes no difference which of two devices sits where.
  bool twins(int a, int b) const { return twin_[static_cast<size_t>(a)] == twin_[static_cast<size_t>(b)]; }
  /// Whether all stages are alike, so that their order is that of a path.
  bool even() const { return exchange_.size() <= 1 && link_.size() <= 1 && even_work_; }

 private:
  const float* row(const std::vector<std::vector<float>>& tables, const std::vector<size_t>& kinds, int stage,
                   int from) const {
    return tables[kinds[static_cast<size_t>(stage)]].data() +
           static_cast<size_t>(from) * static_cast<size_t>(problem_.devices());
  }
  const Problem& problem_;
  std::vector<std::vector<float>> exchange_, link_, link_to_, there_, back_;
  std::vector<size_t> exchange_kind_, link_kind_;
  std::vector<int> twin_;  ///< of each device: the first that is like it
  bool even_work_ = true;
};

/// Groups of devices in the order of their stages, with replicas paired at every cut: its cost is kept up to
/// date while devices change places, and pairs with them. Devices that have no place wait behind the last
/// stage, in places from problem.places() on.
class Board {
 public:
  Board(const Tables& tables, std::vector<int> places);

  double cost() const { return now_.cost; }  ///< evaluate(layout()).total_s, but for rounding
  double mean() const {
    return now_.mean;
  }  ///< of transfers, slow ones counting more: what the slowest hides
  const std::vector<int>& places() const { return places_; }
  Layout layout() const;
  int size() const { return static_cast<int>(places_.size()); }
  int slowest_stage() const;       ///< whose exchange takes longest
  bool alike(int a, int b) const;  ///< whether nothing changes when two places exchange their devices

  /// What cost + weight * mean came to, were the devices of two places of different stages exchanged (the
  /// first one is in use). Infinity, without looking at all of it, where it is more than `most`.
  double look(int a, int b, double weight, double most);
  /// Exchanges what was looked at last, and found to be at most `most`.
  void take();

  /// Pairs replicas in the best way at every cut, and puts the stages along the shortest path.
  void reorder(int exact = 12);

 private:
  struct Total {
    double cost = 0, mean = 0;
    double fill = 0, link_mean = 0;  ///< summed over the cuts
  };
  struct Stage {
    float exchange = 0;  ///< slowest sum
    double exposed = 0;  ///< what of it is not hidden
    double mean = 0;
    double work = 0, update = 0;
  };
  struct Cut {
    float slowest = 0, mean = 0;
    float there = 0, back = 0;  ///< seconds that the slowest link is busy
  };
  struct Stages {
    double exchange = 0, exchange_mean = 0, work = 0, slowest_work = 0, update = 0;
  };
  /// An exchange that is looked at.
  struct Trial {
    int a = -1, b = -1, p = -1, q = -1;  ///< places and their stages
    std::array<Stage, 2> stage{};
    std::vector<float> sums{};  ///< of the stages' places
    int cuts = 0;
    std::array<int, 4> index{};
    std::array<Cut, 4> cut{};
    std::vector<int> column{};
    std::vector<float> value{};
    Total total{};
  };
  void recompute();
  Stage changed(int stage, int place, int device, float* sums) const;
  Stage stage_of(int stage, const float* sums, double slowness) const;
  void pair_again(int cut, int row, int column, int* partner, float* value) const;
  Cut measure(int cut, const int* partner, const float* value) const;
  Stages all_stages() const;
  double beat(double slowest_work) const;
  void finish(const Stages& all, Total& total) const;
  const Stage& trial_stage(int stage) const;
  const Cut& trial_cut(int cut) const;

  const Tables& tables_;
  const Problem& problem_;
  int stages_, replicas_;
  bool even_speed_;
  std::vector<int> places_;
  std::vector<float> sums_;   ///< of each place: its exchange with the others of its stage
  std::vector<int> column_;   ///< of each place before a cut: the place behind it that it is paired with
  std::vector<float> value_;  ///< of each place before a cut: the link to its partner
  std::vector<Stage> stage_;
  std::vector<Cut> cut_;
  Total now_{};
  Trial trial_{};
};

}  // namespace syncopate::plan
