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

/// A kind for each size; sizes within a percent are one kind, and there are few kinds.
struct Kinds {
  std::vector<double> size;  ///< the largest of each kind
  std::vector<size_t> of;
};

Kinds kinds_of(const std::vector<double>& sizes) {
  constexpr size_t kMost = 8;
  std::vector<double> sorted = sizes;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  Kinds kinds;
  for (double width = 0;; width = width == 0 ? 0.01 : 2 * width) {
    kinds.size.clear();
    for (const double size : sorted) {
      if (kinds.size.empty() || size < kinds.size.back() * (1 - width)) kinds.size.push_back(size);
    }
    if (kinds.size.size() <= kMost) break;
  }
  for (const double size : sizes) {
    size_t kind = 0;
    while (kind + 1 < kinds.size.size() && kinds.size[kind + 1] >= size) ++kind;
    kinds.of.push_back(kind);
  }
  return kinds;
}

bool same(const Pair& a, const Pair& b) { return a.delay_s == b.delay_s && a.s_per_gb == b.s_per_gb; }

/// Whether a layout's cost stays when two devices exchange their places.
bool alike(const Problem& problem, int a, int b) {
  const Pairs& pairs = problem.pairs;
  if (problem.speed[at(a)] != problem.speed[at(b)] || !same(pairs.at(a, b), pairs.at(b, a))) return false;
  for (int other = 0; other < pairs.devices(); ++other) {
    if (other == a || other == b) continue;
    if (!same(pairs.at(a, other), pairs.at(b, other)) || !same(pairs.at(other, a), pairs.at(other, b)))
      return false;
  }
  return true;
}

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

float power(float x) { return (x * x) * (x * x); }
float root(float x) { return std::sqrt(std::sqrt(x)); }

/// Of fourth powers: the slower ones weigh more.
float mean_of(const float* values, int count) {
  std::array<float, 4> sum{};
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    for (int lane = 0; lane < 4; ++lane) sum[at(lane)] += power(values[k + lane]);
  }
  for (; k < count; ++k) sum[0] += power(values[k]);
  return root(((sum[0] + sum[1]) + (sum[2] + sum[3])) / static_cast<float>(count));
}

template <typename Cell>
std::vector<float> table(int devices, const Cell& cell) {
  std::vector<float> result(at(devices) * at(devices), 0.F);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from != to) result[at(from) * at(devices) + at(to)] = static_cast<float>(cell(from, to));
    }
  }
  return result;
}

}  // namespace

Tables::Tables(const Problem& problem) : problem_(problem) {
  const Pairs& pairs = problem.pairs;
  const Kinds gradients = kinds_of(problem.gradient_gb), cuts = kinds_of(problem.cut_gb);
  for (const double gb : gradients.size) {
    const double shard = gb * problem.gradient.bits / 32 / problem.replicas;
    exchange_.push_back(table(problem.devices(), [&](int from, int to) {
      const Pair &there = pairs.at(from, to), &back = pairs.at(to, from);
      return there.delay_s + back.delay_s + shard * (there.s_per_gb + back.s_per_gb);
    }));
  }
  for (const double gb : cuts.size) {
    const auto busy_there = [&](int from, int to) {
      const double rate = pairs.at(from, to).s_per_gb;
      return busy_s(problem.forward, gb, rate);
    };
    const auto busy_back = [&](int from, int to) {
      const double rate = pairs.at(to, from).s_per_gb;
      return busy_s(problem.backward, gb, rate);
    };
    link_.push_back(table(problem.devices(), [&](int from, int to) {
      return pairs.at(from, to).delay_s + pairs.at(to, from).delay_s + busy_there(from, to) +
             busy_back(from, to);
    }));
    link_to_.push_back(table(problem.devices(), [&](int to, int from) {
      return link_.back()[at(from) * at(problem.devices()) + at(to)];
    }));
    there_.push_back(table(problem.devices(), busy_there));
    back_.push_back(table(problem.devices(), busy_back));
  }
  exchange_kind_ = gradients.of;
  link_kind_ = cuts.of;
  for (const StageWork& work : problem.work) {
    even_work_ = even_work_ && work.forward_s == problem.work.front().forward_s &&
                 work.backward_s == problem.work.front().backward_s;
  }
  std::vector<int> firsts;
  for (int device = 0; device < problem.devices(); ++device) {
    const auto first =
        std::find_if(firsts.begin(), firsts.end(), [&](int other) { return alike(problem, device, other); });
    twin_.push_back(first == firsts.end() ? device : *first);
    if (first == firsts.end()) firsts.push_back(device);
  }
}

Board::Board(const Tables& tables, std::vector<int> places)
    : tables_(tables),
      problem_(tables.problem()),
      stages_(problem_.stages),
      replicas_(problem_.replicas),
      even_speed_(std::adjacent_find(problem_.speed.begin(), problem_.speed.end(), std::not_equal_to<>()) ==
                  problem_.speed.end()),
      places_(std::move(places)),
      sums_(at(problem_.places())),
      column_(at(problem_.places() - replicas_)),
      value_(column_.size()),
      stage_(at(stages_)),
      cut_(at(stages_ - 1)) {
  for (size_t k = 0; k < column_.size(); ++k) column_[k] = static_cast<int>(k) % replicas_;
  trial_.sums.resize(2 * at(replicas_));
  trial_.column.resize(4 * at(replicas_));
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

int Board::slowest_stage() const {
  return static_cast<int>(
      std::max_element(stage_.begin(), stage_.end(),
                       [](const Stage& a, const Stage& b) { return a.exchange < b.exchange; }) -
      stage_.begin());
}

bool Board::alike(int a, int b) const { return tables_.twins(places_[at(a)], places_[at(b)]); }

Board::Stage Board::stage_of(int stage, const float* sums, double slowness) const {
  const float exchange = largest(sums, replicas_);
  const StageWork& needs = problem_.work[at(stage)];
  double exposed = exchange;
  if (replicas_ > 1) exposed += problem_.gradient_gb[at(stage)] * problem_.gradient.s_per_gb;
  if (problem_.overlap) exposed -= problem_.hidden_share * std::min(exposed, needs.backward_s * slowness);
  return {exchange, exposed, mean_of(sums, replicas_), (needs.forward_s + needs.backward_s) * slowness,
          needs.update_s * slowness};
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
  return stage_of(stage, sums, slowness);
}

/// Row and column of a cut (-1: neither) have new devices: each changes partners with whom it helps most.
void Board::pair_again(int cut, int row, int column, int* partner, float* value) const {
  const int* here = places_.data() + cut * replicas_;
  const int* next = here + replicas_;
  std::copy_n(column_.begin() + cut * replicas_, replicas_, partner);
  std::copy_n(value_.begin() + cut * replicas_, replicas_, value);
  const auto settle = [&](int r) {
    const int c = partner[r];
    const float* from = tables_.link(cut, here[r]);
    const float* to = tables_.link_to(cut, next[c]);
    int best = r;
    float least = from[next[c]];
    value[r] = least;
    for (int s = 0; s < replicas_; ++s) {
      const float slower = std::max(from[next[partner[s]]], to[here[s]]);
      if (slower < least) {
        least = slower;
        best = s;
      }
    }
    if (best == r) return;
    value[r] = from[next[partner[best]]];
    value[best] = to[here[best]];
    std::swap(partner[r], partner[best]);
  };
  if (row >= 0) settle(row);
  if (column >= 0) settle(static_cast<int>(std::find(partner, partner + replicas_, column) - partner));
}

Board::Cut Board::measure(int cut, const int* partner, const float* value) const {
  Cut result{.slowest = largest(value, replicas_), .mean = mean_of(value, replicas_)};
  if (problem_.micro_batches > 1) {
    const int* here = places_.data() + cut * replicas_;
    const int* next = here + replicas_;
    for (int k = 0; k < replicas_; ++k) {
      result.there = std::max(result.there, tables_.busy_there(cut, here[k])[next[partner[k]]]);
      result.back = std::max(result.back, tables_.busy_back(cut, here[k])[next[partner[k]]]);
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

Board::Stages Board::all_stages() const {
  Stages all;
  for (int k = 0; k < stages_; ++k) {
    const Stage& stage = trial_stage(k);
    all.exchange = std::max(all.exchange, stage.exposed);
    all.exchange_mean += power(static_cast<float>(stage.mean));
    all.work += stage.work;
    all.slowest_work = std::max(all.slowest_work, stage.work);
    all.update = std::max(all.update, stage.update);
  }
  all.exchange_mean = root(static_cast<float>(all.exchange_mean / stages_));
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

void Board::recompute() {
  trial_.p = trial_.q = -1;
  trial_.cuts = 0;
  now_ = {};
  for (int stage = 0; stage < stages_; ++stage) {
    const int* here = places_.data() + stage * replicas_;
    float* sums = sums_.data() + stage * replicas_;
    double slowness = 0;
    for (int k = 0; k < replicas_; ++k) {
      const float* row = tables_.exchange(stage, here[k]);
      double sum = 0;
      for (int other = 0; other < replicas_; ++other) sum += row[here[other]];  // 0 for itself
      sums[k] = static_cast<float>(sum);
      slowness = std::max(slowness, 1 / problem_.speed[at(here[k])]);
    }
    stage_[at(stage)] = stage_of(stage, sums, slowness);
    if (stage + 1 == stages_) continue;
    int* partner = column_.data() + stage * replicas_;
    float* value = value_.data() + stage * replicas_;
    std::vector<float> links(at(replicas_) * at(replicas_));
    for (int k = 0; k < replicas_; ++k) {
      const float* row = tables_.link(stage, here[k]);
      for (int other = 0; other < replicas_; ++other)
        links[at(k * replicas_ + other)] = row[here[replicas_ + other]];
    }
    improve_matching(links.data(), replicas_, partner);
    for (int k = 0; k < replicas_; ++k) value[k] = links[at(k * replicas_ + partner[k])];
    cut_[at(stage)] = measure(stage, partner, value);
    now_.fill += cut_[at(stage)].slowest;
    now_.link_mean += cut_[at(stage)].mean;
  }
  finish(all_stages(), now_);
}

/// Cost and mean, from the sums over the cuts and what the stages need.
void Board::finish(const Stages& all, Total& total) const {
  total.cost = all.exchange + total.fill + all.work + all.update;
  if (problem_.micro_batches > 1) total.cost += (problem_.micro_batches - 1) * beat(all.slowest_work);
  total.mean = all.exchange_mean + total.link_mean;
}

double Board::look(int a, int b, double weight, double most) {
  constexpr double kMore = std::numeric_limits<double>::infinity();
  const int p = a / replicas_, q = b / replicas_;
  const int device_a = places_[at(a)], device_b = places_[at(b)];
  trial_.a = a;
  trial_.b = b;
  trial_.p = p;
  trial_.q = q;
  trial_.stage[0] = changed(p, a, device_b, trial_.sums.data());
  if (q < stages_) trial_.stage[1] = changed(q, b, device_a, trial_.sums.data() + replicas_);
  const Stages all = all_stages();

  trial_.cuts = 0;
  Total& total = trial_.total;
  total.fill = now_.fill;
  total.link_mean = now_.link_mean;
  for (const int cut : {p - 1, p, q - 1, q}) {
    const auto end = trial_.index.begin() + trial_.cuts;
    if (cut < 0 || cut + 1 >= stages_ || std::find(trial_.index.begin(), end, cut) != end) continue;
    trial_.index[at(trial_.cuts++)] = cut;
    total.fill -= cut_[at(cut)].slowest;
    total.link_mean -= cut_[at(cut)].mean;
  }
  // The links that change may come to nothing; mostly the stages alone are too much.
  const double least =
      all.exchange + total.fill + all.work + all.update + weight * (all.exchange_mean + total.link_mean);
  if (least > most) return kMore;

  std::swap(places_[at(a)], places_[at(b)]);
  const auto slot_of = [&](int stage) {
    return stage == p ? a % replicas_ : stage == q ? b % replicas_ : -1;
  };
  for (int k = 0; k < trial_.cuts; ++k) {
    const int cut = trial_.index[at(k)];
    int* partner = trial_.column.data() + k * replicas_;
    float* value = trial_.value.data() + k * replicas_;
    pair_again(cut, slot_of(cut), slot_of(cut + 1), partner, value);
    trial_.cut[at(k)] = measure(cut, partner, value);
    total.fill += trial_.cut[at(k)].slowest;
    total.link_mean += trial_.cut[at(k)].mean;
  }
  std::swap(places_[at(a)], places_[at(b)]);
  finish(all, total);
  const double found = total.cost + weight * total.mean;
  return found > most ? kMore : found;
}

void Board::take() {
  std::swap(places_[at(trial_.a)], places_[at(trial_.b)]);
  const auto set = [&](int stage, size_t which) {
    if (stage >= stages_) return;
    stage_[at(stage)] = trial_.stage[which];
    std::copy_n(trial_.sums.data() + at(replicas_) * which, replicas_, sums_.data() + stage * replicas_);
  };
  set(trial_.p, 0);
  set(trial_.q, 1);
  for (int k = 0; k < trial_.cuts; ++k) {
    const int cut = trial_.index[at(k)];
    cut_[at(cut)] = trial_.cut[at(k)];
    std::copy_n(trial_.column.data() + k * replicas_, replicas_, column_.data() + cut * replicas_);
    std::copy_n(trial_.value.data() + k * replicas_, replicas_, value_.data() + cut * replicas_);
  }
  now_ = trial_.total;
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
