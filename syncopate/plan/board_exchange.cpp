#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "syncopate/plan/board.h"

// What exchanges of devices come to, and making them.
namespace syncopate::plan {

/// The stage, and the sums of its places, were `place` given to `device`.
Board::Stage Board::changed(int stage, int place, int device, float* sums) const {
  const int first = stage * replicas_;
  const int* here = places_.data() + first;
  const int old = places_[at(place)];
  const float* old_row = tables_.exchange(stage, old);
  const float* new_row = tables_.exchange(stage, device);
  const float* before = sums_.data() + first;
  float own = 0;
  for (int k = 0; k < replicas_; ++k) {
    const float cost = new_row[here[k]];
    own += cost;
    sums[k] = before[k] + (cost - old_row[here[k]]);
  }
  sums[place - first] = own - new_row[old];
  double slowness = 1 / problem_.speed[at(device)];
  if (!even_speed_) {
    for (int k = 0; k < replicas_; ++k) {
      if (first + k != place) slowness = std::max(slowness, 1 / problem_.speed[at(here[k])]);
    }
  }
  return stage_from(stage, sums, slowness);
}

/// Row and column of a cut (-1: neither) have new devices: each changes partners with whom it helps most.
void Board::pair_again(int cut, int row, int column, size_t which) {
  const int* here = places_.data() + cut * replicas_;
  int* columns = trial_.column.data() + which * at(replicas_);
  int* partner = trial_.partner.data() + which * at(replicas_);
  float* value = trial_.value.data() + which * at(replicas_);
  std::copy_n(column_.begin() + cut * replicas_, replicas_, columns);
  std::copy_n(partner_.begin() + cut * replicas_, replicas_, partner);
  std::copy_n(value_.begin() + cut * replicas_, replicas_, value);
  const auto settle = [&](int r) {
    const float* from = tables_.link(cut, here[r]);
    const float* to = tables_.link_to(cut, partner[r]);
    int best = r;
    float least = from[partner[r]];
    value[r] = least;
    for (int s = 0; s < replicas_; ++s) {
      const float slower = std::max(from[partner[s]], to[here[s]]);
      best = slower < least ? s : best;
      least = std::min(slower, least);
    }
    if (best == r) return;
    value[r] = from[partner[best]];
    value[best] = to[here[best]];
    std::swap(columns[r], columns[best]);
    std::swap(partner[r], partner[best]);
  };
  if (column >= 0) {
    const int r = row_[at(cut * replicas_ + column)];
    partner[r] = here[replicas_ + column];
    if (row >= 0) settle(row);
    settle(row < 0 ? r : static_cast<int>(std::find(columns, columns + replicas_, column) - columns));
  } else {
    settle(row);
  }
}

/// Of the stages that a trial leaves alone.
double Board::slowest_other() const {
  for (const int stage : slowest_) {
    if (stage >= 0 && stage != trial_.p && stage != trial_.q) return stage_[at(stage)].exposed;
  }
  return 0;
}

Board::Stages Board::all_stages() const {
  Stages all = all_;
  const bool both = trial_.q < stages_;
  all.exchange = std::max(slowest_other(), trial_.stage[0].exposed);
  all.power += (trial_.stage[0].power - stage_[at(trial_.p)].power) / stages_;
  if (both) {
    all.exchange = std::max(all.exchange, trial_.stage[1].exposed);
    all.power += (trial_.stage[1].power - stage_[at(trial_.q)].power) / stages_;
  }
  if (even_speed_) return all;
  all.work = all.slowest_work = all.update = 0;
  for (int k = 0; k < stages_; ++k) {
    const Stage& stage = trial_stage(k);
    all.work += stage.work;
    all.slowest_work = std::max(all.slowest_work, stage.work);
    all.update = std::max(all.update, stage.update);
  }
  return all;
}

/// The cuts that a trial changes, the sums without them, and what is left of them at least.
Board::Floor Board::touch_cuts() {
  Floor floor;
  trial_.cuts = 0;
  Total& total = trial_.total;
  total.fill = now_.fill;
  total.link_mean = now_.link_mean;
  const auto touch = [&](int cut, bool both) {
    if (cut < 0 || cut + 1 >= stages_) return;
    trial_.index[at(trial_.cuts++)] = cut;
    total.fill -= cut_[at(cut)].slowest;
    total.link_mean -= cut_[at(cut)].mean;
    if (both) return;
    floor.slowest += floor_[at(cut)].slowest;
    floor.mean += floor_[at(cut)].mean;
  };
  const int low = std::min(trial_.p, trial_.q), high = std::max(trial_.p, trial_.q);
  touch(low - 1, false);
  touch(low, high == low + 1);
  if (high > low + 1) touch(high - 1, false);
  touch(high, false);
  return floor;
}

double Board::look(int a, int b, double weight, double most) {
  constexpr double kMore = std::numeric_limits<double>::infinity();
  const int p = stage_of(a), q = stage_of(b);
  const int device_a = places_[at(a)], device_b = places_[at(b)];
  trial_.a = a;
  trial_.b = b;
  trial_.p = p;
  trial_.q = q;
  Floor floor = touch_cuts();
  Total& total = trial_.total;
  const auto too_much = [&](const Stages& all) {
    const double cost = all.exchange + total.fill + floor.slowest + all.work + all.update;
    return (cost + weight * (mean_of(all.power) + total.link_mean + floor.mean)) * kRounding > most;
  };

  // Mostly the sums of the two devices alone are too much.
  if (even_speed_) {
    const double slowness = 1 / problem_.speed.front();
    const auto alone = [&](int stage, int device, int other) {
      const float sum = near_[at(stage * devices_ + device)] - tables_.exchange(stage, device)[other];
      const double power = power_of(sum) / static_cast<float>(replicas_);
      return Stage{.exposed = exposed(stage, sum, slowness), .power = power};
    };
    trial_.stage[0] = alone(p, device_b, device_a);
    if (q < stages_) trial_.stage[1] = alone(q, device_a, device_b);
    if (too_much(all_stages())) return kMore;
  }
  trial_.stage[0] = changed(p, a, device_b, trial_.sums.data());
  if (q < stages_) trial_.stage[1] = changed(q, b, device_a, trial_.sums.data() + replicas_);
  const Stages all = all_stages();
  if (too_much(all)) return kMore;

  std::swap(places_[at(a)], places_[at(b)]);
  const auto slot_of = [&](int stage) {
    return stage == p ? a - p * replicas_ : stage == q ? b - q * replicas_ : -1;
  };
  bool more = false;
  for (int k = 0; k < trial_.cuts && !more; ++k) {
    const int cut = trial_.index[at(k)];
    const int row = slot_of(cut), column = slot_of(cut + 1);
    pair_again(cut, row, column, at(k));
    const Cut& found = trial_.cut[at(k)] =
        measure(cut, trial_.partner.data() + k * replicas_, trial_.value.data() + k * replicas_);
    total.fill += found.slowest;
    total.link_mean += found.mean;
    if (row < 0 || column < 0) {
      floor.slowest -= floor_[at(cut)].slowest;
      floor.mean -= floor_[at(cut)].mean;
    }
    more = too_much(all);
  }
  std::swap(places_[at(a)], places_[at(b)]);
  if (more) return kMore;
  finish(all, total);
  const double found = total.cost + weight * total.mean;
  return found > most ? kMore : found;
}

void Board::take() {
  const auto set = [&](int stage, int comes, int goes, size_t which) {
    if (stage >= stages_) return;
    stage_[at(stage)] = trial_.stage[which];
    std::copy_n(trial_.sums.data() + at(replicas_) * which, replicas_, sums_.data() + stage * replicas_);
    const float *more = tables_.exchange(stage, comes), *less = tables_.exchange(stage, goes);
    float* near = near_.data() + stage * devices_;
    for (int device = 0; device < devices_; ++device) near[device] += more[device] - less[device];
  };
  const int device_a = places_[at(trial_.a)], device_b = places_[at(trial_.b)];
  set(trial_.p, device_b, device_a, 0);
  set(trial_.q, device_a, device_b, 1);
  std::swap(places_[at(trial_.a)], places_[at(trial_.b)]);
  for (int k = 0; k < trial_.cuts; ++k) {
    const int cut = trial_.index[at(k)], first = cut * replicas_;
    cut_[at(cut)] = trial_.cut[at(k)];
    const int* column = trial_.column.data() + k * replicas_;
    std::copy_n(column, replicas_, column_.data() + first);
    std::copy_n(trial_.partner.data() + k * replicas_, replicas_, partner_.data() + first);
    std::copy_n(trial_.value.data() + k * replicas_, replicas_, value_.data() + first);
    for (int row = 0; row < replicas_; ++row) row_[at(first + column[row])] = row;
    set_floor(cut);
  }
  summarize();
  now_ = trial_.total;
}

bool Board::exchange_stretches(int a, int b, int length, double weight, double most) {
  std::array<int, kLongest> from_a{}, from_b{};
  const int p = stage_of(a), q = stage_of(b);
  // First without the links inside the stretches, as in look().
  Stages all = all_;
  all.exchange = 0;
  double links = now_.fill + weight * now_.link_mean;
  const auto drop = [&](int cut, bool outside) {
    if (cut < 0 || cut + 1 >= stages_) return;
    links -= cut_[at(cut)].slowest + weight * cut_[at(cut)].mean;
    if (outside) links += floor_[at(cut)].slowest + weight * floor_[at(cut)].mean;
  };
  const auto change = [&](int stage, int place, int device) {
    const Stage changes = changed(stage, place, device, trial_.sums.data());
    all.exchange = std::max(all.exchange, changes.exposed);
    all.power += (changes.power - stage_[at(stage)].power) / stages_;
  };
  const bool joined = std::abs(p - q) == length;
  const int high = std::max(p, q);
  for (int k = 0; k < length; ++k) {
    from_a[at(k)] = a;
    from_b[at(k)] = b;
    change(p + k, a, places_[at(b)]);
    change(q + k, b, places_[at(a)]);
    for (const int stage : {p, q}) {
      if (k > 0 || !joined || stage != high) drop(stage + k - 1, k == 0);
    }
    if (k + 1 == length) break;
    a = (p + k + 1) * replicas_ + column_[at(a)];
    b = (q + k + 1) * replicas_ + column_[at(b)];
  }
  drop(p + length - 1, !joined || p == high);
  drop(q + length - 1, !joined || q == high);
  if ((all.exchange + links + (even_speed_ ? all.work + all.update : 0) + weight * mean_of(all.power)) *
          kRounding >
      most)
    return false;

  saved_ = *this;
  for (int k = 0; k < length; ++k) {
    if (alike(from_a[at(k)], from_b[at(k)])) continue;
    look(from_a[at(k)], from_b[at(k)], 0, std::numeric_limits<double>::max());
    take();
  }
  if (now_.cost + weight * now_.mean <= most) return true;
  static_cast<BoardState&>(*this) = saved_;
  return false;
}

}  // namespace syncopate::plan
