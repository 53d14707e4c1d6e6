#include "syncopate/plan/board.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "syncopate/plan/matching.h"
#include "syncopate/plan/order.h"

namespace syncopate::plan {
namespace {

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
    sum += power_of(rest);
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
