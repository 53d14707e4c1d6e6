#include "syncopate/plan/board.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "syncopate/plan/matching.h"
#include "syncopate/plan/order.h"

namespace syncopate::plan {
namespace {

size_t at(int place) { return static_cast<size_t>(place); }

/// Four at a time: a maximum (and a sum) waits for the one before it.
float largest(const float* values, int count) {
  std::array<float, 4> most{};
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    for (int lane = 0; lane < 4; ++lane)
      most[at(lane)] = most[at(lane)] < values[k + lane] ? values[k + lane] : most[at(lane)];
  }
  for (; k < count; ++k) most[0] = std::max(most[0], values[k]);
  return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
}

float fourth(float x) { return (x * x) * (x * x); }
float itself(float x) { return x; }

template <float (*power)(float)>
float sum_of(const float* values, int count) {
  std::array<float, 4> sum{};
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    for (int lane = 0; lane < 4; ++lane) sum[at(lane)] += power(values[k + lane]);
  }
  for (; k < count; ++k) sum[0] += power(values[k]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Bounds are added up in another order than what they bound.
constexpr double kRounding = 1 - 1e-5;

}  // namespace

Board::Board(const Tables& tables, std::vector<int> places, Mean kind)
    : tables_(tables),
      problem_(tables.problem()),
      kind_(kind),
      stages_(problem_.stages),
      replicas_(problem_.replicas),
      devices_(problem_.devices()),
      even_speed_(std::adjacent_find(problem_.speed.begin(), problem_.speed.end(), std::not_equal_to<>()) ==
                  problem_.speed.end()) {
  places_ = std::move(places);
  sums_.resize(at(problem_.places()));
  near_.resize(at(stages_) * at(devices_));
  column_.resize(at(problem_.places() - replicas_));
  row_.resize(column_.size());
  partner_.resize(column_.size());
  value_.resize(column_.size());
  stage_.resize(at(stages_));
  cut_.resize(at(stages_ - 1));
  floor_.resize(cut_.size());
  for (size_t k = 0; k < column_.size(); ++k) column_[k] = static_cast<int>(k) % replicas_;
  for (int place = 0; place < size(); ++place) stage_at_.push_back(std::min(place / replicas_, stages_));
  trial_.sums.resize(2 * at(replicas_));
  trial_.column.resize(4 * at(replicas_));
  trial_.partner.resize(4 * at(replicas_));
  trial_.value.resize(4 * at(replicas_));
  recompute();
}

Layout Board::layout() const {
  Layout result{stages_, replicas_, {places_.begin(), places_.begin() + replicas_}};
  std::vector<int> turn(at(replicas_));  // the place in its stage that each replica has
  std::iota(turn.begin(), turn.end(), 0);
  for (int stage = 1; stage < stages_; ++stage) {
    for (int& each : turn) {
      each = column_[at((stage - 1) * replicas_ + each)];
      result.device.push_back(places_[at(stage * replicas_ + each)]);
    }
  }
  return result;
}

bool Board::alike(int a, int b) const { return tables_.twins(places_[at(a)], places_[at(b)]); }

double Board::powers(const float* values) const {
  const float sum =
      kind_ == Mean::kPlain ? sum_of<itself>(values, replicas_) : sum_of<fourth>(values, replicas_);
  return sum / static_cast<float>(replicas_);
}

double Board::mean_of(double power) const {
  return kind_ == Mean::kPlain ? power : std::sqrt(std::sqrt(static_cast<float>(power)));
}

double Board::exposed(int stage, double exchange, double slowness) const {
  if (replicas_ > 1) exchange += problem_.gradient_gb[at(stage)] * problem_.gradient.s_per_gb;
  if (!problem_.overlap) return exchange;
  return exchange -
         problem_.hidden_share * std::min(exchange, problem_.work[at(stage)].backward_s * slowness);
}

Board::Stage Board::stage_from(int stage, const float* sums, double slowness) const {
  const float exchange = largest(sums, replicas_);
  const StageWork& needs = problem_.work[at(stage)];
  return {exchange, exposed(stage, exchange, slowness), powers(sums),
          (needs.forward_s + needs.backward_s) * slowness, needs.update_s * slowness};
}

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

Board::Cut Board::measure(int cut, const int* partner, const float* value) const {
  Cut result{.slowest = largest(value, replicas_), .mean = static_cast<float>(mean_of(powers(value)))};
  if (problem_.micro_batches > 1) {
    const int* here = places_.data() + cut * replicas_;
    for (int k = 0; k < replicas_; ++k) {
      result.there = std::max(result.there, tables_.busy_there(cut, here[k])[partner[k]]);
      result.back = std::max(result.back, tables_.busy_back(cut, here[k])[partner[k]]);
    }
  }
  return result;
}

const Board::Stage& Board::trial_stage(int stage) const {
  return stage == trial_.p ? trial_.stage[0] : stage == trial_.q ? trial_.stage[1] : stage_[at(stage)];
}

const Board::Cut& Board::trial_cut(int cut) const {
  for (int k = 0; k < trial_.cuts; ++k) {
    if (trial_.index[at(k)] == cut) return trial_.cut[at(k)];
  }
  return cut_[at(cut)];
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

/// What every further micro-batch takes.
double Board::beat(double slowest_work) const {
  double slowest = slowest_work, back = 0;
  for (int k = 0; k < stages_; ++k) {
    const Cut cut = k + 1 < stages_ ? trial_cut(k) : Cut{};
    slowest = std::max(slowest, problem_.overlap ? std::max<double>(cut.there, cut.back)
                                                 : trial_stage(k).work + cut.there + back);
    back = cut.back;
  }
  return slowest;
}

/// What is known of all stages together, and of the cuts: after every change.
void Board::summarize() {
  all_ = {};
  slowest_ = {-1, -1, -1};
  for (int k = 0; k < stages_; ++k) {
    const Stage& stage = stage_[at(k)];
    all_.exchange = std::max(all_.exchange, stage.exposed);
    all_.power += stage.power / stages_;
    all_.work += stage.work;
    all_.slowest_work = std::max(all_.slowest_work, stage.work);
    all_.update = std::max(all_.update, stage.update);
    int next = k;
    for (int& each : slowest_) {
      if (next >= 0 && (each < 0 || stage_[at(next)].exposed > stage_[at(each)].exposed))
        std::swap(next, each);
    }
  }
}

void Board::set_floor(int cut) {
  const float* value = value_.data() + cut * replicas_;
  float first = 0, second = 0, third = 0, sum = 0;
  for (int k = 0; k < replicas_; ++k) {
    const float less = std::min(first, value[k]), rest = std::min(second, less);
    first = std::max(first, value[k]);
    second = std::max(second, less);
    third = std::max(third, rest);
    sum += kind_ == Mean::kPlain ? rest : fourth(rest);
  }
  floor_[at(cut)] = {third, static_cast<float>(mean_of(sum / static_cast<float>(replicas_)))};
}

void Board::recompute() {
  trial_.p = trial_.q = -1;
  trial_.cuts = 0;
  now_ = {};
  for (int stage = 0; stage < stages_; ++stage) {
    const int* here = places_.data() + stage * replicas_;
    float* sums = sums_.data() + stage * replicas_;
    float* near = near_.data() + stage * devices_;
    std::fill_n(near, devices_, 0.F);
    double slowness = 0;
    for (int k = 0; k < replicas_; ++k) {
      const float* row = tables_.exchange(stage, here[k]);  // 0 for itself
      for (int device = 0; device < devices_; ++device) near[device] += row[device];
      slowness = std::max(slowness, 1 / problem_.speed[at(here[k])]);
    }
    for (int k = 0; k < replicas_; ++k) sums[k] = near[here[k]];
    stage_[at(stage)] = stage_from(stage, sums, slowness);
    if (stage + 1 == stages_) continue;
    int* column = column_.data() + stage * replicas_;
    std::vector<float> links(at(replicas_) * at(replicas_));
    for (int k = 0; k < replicas_; ++k) {
      const float* row = tables_.link(stage, here[k]);
      for (int other = 0; other < replicas_; ++other)
        links[at(k * replicas_ + other)] = row[here[replicas_ + other]];
    }
    improve_matching(links.data(), replicas_, column);
    for (int k = 0; k < replicas_; ++k) {
      const size_t place = at(stage * replicas_ + k);
      partner_[place] = here[replicas_ + column[k]];
      row_[at(stage * replicas_ + column[k])] = k;
      value_[place] = links[at(k * replicas_ + column[k])];
    }
    cut_[at(stage)] = measure(stage, partner_.data() + stage * replicas_, value_.data() + stage * replicas_);
    set_floor(stage);
    now_.fill += cut_[at(stage)].slowest;
    now_.link_mean += cut_[at(stage)].mean;
  }
  summarize();
  finish(all_, now_);
}

/// Cost and mean, from the sums over the cuts and what the stages need.
void Board::finish(const Stages& all, Total& total) const {
  total.cost = all.exchange + total.fill + all.work + all.update;
  if (problem_.micro_batches > 1) total.cost += (problem_.micro_batches - 1) * beat(all.slowest_work);
  total.mean = mean_of(all.power) + total.link_mean;
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
      const double power = (kind_ == Mean::kPlain ? sum : fourth(sum)) / static_cast<float>(replicas_);
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

void Board::reorder(int exact) {
  if (stages_ < 3 || !tables_.even()) {
    recompute();
    return;
  }
  std::vector<float> distance(at(stages_) * at(stages_), 0.F), cost(at(replicas_) * at(replicas_));
  std::vector<int> column(at(replicas_)), order(at(stages_));
  std::iota(order.begin(), order.end(), 0);
  for (int from = 0; from < stages_; ++from) {
    for (int to = 0; to < stages_; ++to) {
      if (from == to) continue;
      for (int k = 0; k < replicas_; ++k) {
        const float* row = tables_.link(0, places_[at(from * replicas_ + k)]);
        for (int other = 0; other < replicas_; ++other)
          cost[at(k * replicas_ + other)] = row[places_[at(to * replicas_ + other)]];
      }
      std::iota(column.begin(), column.end(), 0);
      distance[at(from * stages_ + to)] = improve_matching(cost.data(), replicas_, column.data());
    }
  }
  const double before = path_length(distance, stages_, order);
  order = shortest_path(distance, stages_, order, exact);
  if (path_length(distance, stages_, order) >= before * (1 - 1e-6)) {
    recompute();
    return;
  }
  const std::vector<int> old = places_;
  for (int stage = 0; stage < stages_; ++stage) {
    std::copy_n(old.begin() + order[at(stage)] * replicas_, replicas_, places_.begin() + stage * replicas_);
  }
  const double cost_before = now_.cost;
  recompute();
  if (now_.cost > cost_before) {
    places_ = old;
    recompute();
  }
}

}  // namespace syncopate::plan
