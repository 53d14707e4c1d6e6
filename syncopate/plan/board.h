#pragma once

#include <array>
#include <vector>

#include "syncopate/plan/tables.h"

namespace syncopate::plan {

/// Bounds are added up in another order than what they bound.
inline constexpr double kRounding = 1 - 1e-5;

/// What is looked at beside the slowest transfer, which hides all others: their mean, or one in which slow
/// ones count more.
enum class Mean { kPlain, kFourthPowers };

/// What exchanges change: kept aside while a stretch of them is tried.
struct BoardState {
  struct Total {
    double cost = 0, mean = 0;
    double fill = 0, link_mean = 0;  ///< summed over the cuts
  };
  struct Stage {
    float exchange = 0;  ///< slowest sum
    double exposed = 0;  ///< what of it is not hidden
    double power = 0;    ///< mean of its sums' powers
    double work = 0, update = 0;
  };
  struct Cut {
    float slowest = 0, mean = 0;
    float there = 0, back = 0;  ///< seconds that the slowest link is busy
  };
  /// No less is left of a cut when a device on one of its sides changes, and two links with it.
  struct Floor {
    float slowest = 0, mean = 0;
  };
  struct Stages {
    double exchange = 0, power = 0, work = 0, slowest_work = 0, update = 0;
  };
  std::vector<int> places_;
  std::vector<float> sums_;   ///< of each place: its exchange with the others of its stage
  std::vector<float> near_;   ///< of each stage: every device's exchange with all of it
  std::vector<int> column_;   ///< of each place before a cut: the place behind it that it is paired with
  std::vector<int> row_;      ///< and the other way round
  std::vector<int> partner_;  ///< the device there
  std::vector<float> value_;  ///< of each place before a cut: the link to its partner
  std::vector<Stage> stage_;
  std::vector<Cut> cut_;
  std::vector<Floor> floor_;
  std::array<int, 3> slowest_{};  ///< stages by their exchange, or -1
  Stages all_{};
  Total now_{};
};

/// Groups of devices in the order of their stages, with replicas paired at every cut: its cost is kept up to
/// date while devices change places, and pairs with them. Devices that have no place wait behind the last
/// stage, in places from problem.places() on.
class Board : private BoardState {
 public:
  Board(const Tables& tables, std::vector<int> places, Mean kind = Mean::kFourthPowers);

  double cost() const { return now_.cost; }  ///< evaluate(layout()).total_s, but for rounding
  double mean() const { return now_.mean; }  ///< of transfers, by stage and cut
  const std::vector<int>& places() const { return places_; }
  Layout layout() const;
  int size() const { return static_cast<int>(places_.size()); }
  int stage_of(int place) const { return stage_at_[static_cast<size_t>(place)]; }
  int slowest_stage() const { return slowest_[0]; }  ///< whose exchange takes longest
  float exchange(int stage) const {
    return stage_[static_cast<size_t>(stage)].exchange;
  }                                                                             ///< its slowest device's
  float link(int cut) const { return cut_[static_cast<size_t>(cut)].slowest; }  ///< of its pairs
  bool alike(int a, int b) const;  ///< whether nothing changes when two places exchange their devices

  /// What cost + weight * mean came to, were the devices of two places of different stages exchanged (the
  /// first one is in use). Infinity, without looking at all of it, where it is more than `most`.
  double look(int a, int b, double weight, double most);
  /// Exchanges what was looked at last, and found to be at most `most`.
  void take();

  static constexpr int kLongest = 8;  ///< stretch
  /// Exchanges two stretches of pipelines that have no stage in common, `length` devices from two places on,
  /// if cost + weight * mean comes to `most` at most.
  bool exchange_stretches(int a, int b, int length, double weight, double most);

  /// Pairs replicas in the best way at every cut, and puts the stages along the shortest path.
  void reorder(int exact = 12);

 private:
  /// An exchange that is looked at.
  struct Trial {
    int a = -1, b = -1, p = -1, q = -1;  ///< places and their stages
    std::array<Stage, 2> stage{};
    std::vector<float> sums{};  ///< of the stages' places
    int cuts = 0;
    std::array<int, 4> index{};
    std::array<Cut, 4> cut{};
    std::vector<int> column{}, partner{};
    std::vector<float> value{};
    Total total{};
  };
  void recompute();
  void summarize();
  void set_floor(int cut);
  float power_of(float x) const { return kind_ == Mean::kPlain ? x : (x * x) * (x * x); }
  double powers(const float* values) const;
  double mean_of(double power) const;
  double exposed(int stage, double exchange, double slowness) const;
  Stage changed(int stage, int place, int device, float* sums) const;
  Stage stage_from(int stage, const float* sums, double slowness) const;
  Floor touch_cuts();
  void pair_again(int cut, int row, int column, size_t which);
  Cut measure(int cut, const int* partner, const float* value) const;
  double slowest_other() const;
  Stages all_stages() const;
  double beat(double slowest_work) const;
  void finish(const Stages& all, Total& total) const;
  const Stage& trial_stage(int stage) const;
  const Cut& trial_cut(int cut) const;

  const Tables& tables_;
  const Problem& problem_;
  const Mean kind_;
  int stages_, replicas_, devices_;
  bool even_speed_;
  std::vector<int> stage_at_;
  BoardState saved_{};
  Trial trial_{};
};

}  // namespace syncopate::plan
