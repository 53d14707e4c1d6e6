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
      return busy_s(fastest(problem.forward, rate), gb, rate);
    };
    const auto busy_back = [&](int from, int to) {
      const double rate = pairs.at(to, from).s_per_gb;
      return busy_s(fastest(problem.backward, rate), gb, rate);
    };
    link_.push_back(table(problem.devices(), [&](int from, int to) {
      return pairs.at(from, to).delay_s + pairs.at(to, from).delay_s + busy_there(from, to) +
             busy_back(from, to);
    }));
    busy_.push_back(table(problem.devices(), [&](int from, int to) {
      return problem.overlap ? std::max(busy_there(from, to), busy_back(from, to))
                             : busy_there(from, to) + busy_back(from, to);
    }));
  }
  exchange_kind_ = gradients.of;
  link_kind_ = cuts.of;
  for (const StageWork& work : problem.work) {
    even_work_ = even_work_ && work.forward_s == problem.work.front().forward_s &&
                 work.backward_s == problem.work.front().backward_s;
  }
}

Board::Board(const Tables& tables, std::vector<int> places)
    : tables_(tables),
      problem_(tables.problem()),
      stages_(problem_.stages),
      replicas_(problem_.replicas),
      square_(at(replicas_) * at(replicas_)),
      even_speed_(std::adjacent_find(problem_.speed.begin(), problem_.speed.end(), std::not_equal_to<>()) ==
                  problem_.speed.end()),
      places_(std::move(places)),
      sums_(at(problem_.places())),
      links_(at(stages_ - 1) * square_),
      column_(at(problem_.places() - replicas_)),
      stage_(at(stages_)),
      cut_(at(stages_ - 1)) {
  for (size_t k = 0; k < column_.size(); ++k) column_[k] = static_cast<int>(k) % replicas_;
  undo_.sums.resize(2 * at(replicas_));
  undo_.column.resize(4 * at(replicas_));
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

int Board::slowest_cut() const {
  return static_cast<int>(std::max_element(cut_.begin(), cut_.end(),
                                           [](const Cut& a, const Cut& b) { return a.slowest < b.slowest; }) -
                          cut_.begin());
}

float Board::slowness_of(int stage) const {
  if (even_speed_) return static_cast<float>(1 / problem_.speed.front());
  double slowest = 0;
  for (int k = 0; k < replicas_; ++k)
    slowest = std::max(slowest, 1 / problem_.speed[at(places_[at(stage * replicas_ + k)])]);
  return static_cast<float>(slowest);
}

/// Row and column of a cut (-1: neither) have new costs: each changes partners with whom it helps most.
void Board::repair(int stage, int row, int column) {
  int* partner = column_.data() + stage * replicas_;
  const float* link = links(stage);
  const auto settle = [&](int r) {
    const int c = partner[r];
    const float own = link[r * replicas_ + c];
    int best = r;
    float least = own;
    for (int s = 0; s < replicas_; ++s) {
      const float changed = std::max(link[r * replicas_ + partner[s]], link[s * replicas_ + c]);
      if (changed < least) {
        least = changed;
        best = s;
      }
    }
    std::swap(partner[r], partner[best]);
  };
  if (row >= 0) settle(row);
  if (column >= 0) settle(static_cast<int>(std::find(partner, partner + replicas_, column) - partner));
  measure(stage);
}

void Board::measure(int stage) {
  const int* partner = column_.data() + stage * replicas_;
  const float* link = links(stage);
  Cut cut;
  for (int k = 0; k < replicas_; ++k) {
    const float each = link[k * replicas_ + partner[k]];
    cut.slowest = std::max(cut.slowest, each);
    cut.sum += each;
  }
  if (problem_.micro_batches > 1) {
    const int* here = places_.data() + stage * replicas_;
    const int* next = here + replicas_;
    for (int k = 0; k < replicas_; ++k)
      cut.busy = std::max(cut.busy, tables_.busy(stage, here[k])[next[partner[k]]]);
  }
  cut_[at(stage)] = cut;
}

Board::Total Board::total() const {
  double exchange = 0, exchange_sum = 0, fill = 0, link_sum = 0;
  double work_sum = 0, slowest_work = 0, beat = 0, update = 0;
  for (size_t k = 0; k < stage_.size(); ++k) {
    const StageWork& needs = problem_.work[k];
    double exposed = stage_[k].exchange;
    if (replicas_ > 1) exposed += problem_.gradient_gb[k] * problem_.gradient.s_per_gb;
    if (problem_.overlap)
      exposed -= problem_.hidden_share * std::min<double>(exposed, needs.backward_s * stage_[k].slowness);
    exchange = std::max(exchange, exposed);
    exchange_sum += exposed;
    const double work = (needs.forward_s + needs.backward_s) * stage_[k].slowness;
    work_sum += work;
    slowest_work = std::max(slowest_work, work);
    update = std::max(update, needs.update_s * stage_[k].slowness);
    if (!problem_.overlap) beat = std::max(beat, work + (k < cut_.size() ? cut_[k].busy : 0));
  }
  for (const Cut& cut : cut_) {
    fill += cut.slowest;
    link_sum += cut.sum;
    beat = std::max<double>(beat, cut.busy);
  }
  beat = std::max(beat, slowest_work);
  return {exchange + fill + work_sum + update + (problem_.micro_batches - 1) * beat,
          exchange_sum / stages_ + link_sum / replicas_};
}

void Board::recompute() {
  for (int stage = 0; stage < stages_; ++stage) {
    const int* here = places_.data() + stage * replicas_;
    float slowest = 0;
    for (int k = 0; k < replicas_; ++k) {
      const float* row = tables_.exchange(stage, here[k]);
      double sum = 0;
      for (int other = 0; other < replicas_; ++other) sum += row[here[other]];  // 0 for itself
      sums_[at(stage * replicas_ + k)] = static_cast<float>(sum);
      slowest = std::max(slowest, static_cast<float>(sum));
    }
    stage_[at(stage)] = {slowest, slowness_of(stage)};
    if (stage + 1 == stages_) continue;
    for (int k = 0; k < replicas_; ++k) {
      const float* row = tables_.link(stage, here[k]);
      for (int other = 0; other < replicas_; ++other)
        links(stage)[k * replicas_ + other] = row[here[replicas_ + other]];
    }
    improve_matching(links(stage), replicas_, column_.data() + stage * replicas_);
    measure(stage);
  }
  now_ = total();
}

/// Gives `place` to `device` in the tables of the cuts before and behind its stage.
void Board::place(int place, int device) {
  places_[at(place)] = device;
  const int stage = place / replicas_, slot = place % replicas_;
  if (stage >= stages_) return;
  if (stage + 1 < stages_) {
    const float* row = tables_.link(stage, device);
    const int* next = places_.data() + (stage + 1) * replicas_;
    float* link = links(stage) + slot * replicas_;
    for (int k = 0; k < replicas_; ++k) link[k] = row[next[k]];
  }
  if (stage > 0) {
    const int* previous = places_.data() + (stage - 1) * replicas_;
    float* link = links(stage - 1) + slot;
    for (int k = 0; k < replicas_; ++k) link[k * replicas_] = tables_.link(stage - 1, previous[k])[device];
  }
}

/// The sums of a stage in which `place`, which still has its old device, is given to `device`.
void Board::change_stage(int stage, int place, int device) {
  const int first = stage * replicas_;
  const int* here = places_.data() + first;
  const float* old_row = tables_.exchange(stage, places_[at(place)]);
  const float* new_row = tables_.exchange(stage, device);
  float* sums = sums_.data() + first;
  float own = 0, slowest = 0;
  for (int k = 0; k < replicas_; ++k) {
    const float cost = new_row[here[k]];
    own += cost;
    sums[k] += cost - old_row[here[k]];
  }
  sums[place - first] = own - new_row[places_[at(place)]];
  for (int k = 0; k < replicas_; ++k) slowest = std::max(slowest, sums[k]);
  stage_[at(stage)].exchange = slowest;
}

void Board::swap(int a, int b) {
  const int p = a / replicas_, q = b / replicas_;
  undo_.a = a;
  undo_.b = b;
  undo_.total = now_;
  undo_.stage = stage_;
  undo_.cut = cut_;
  const int device_a = places_[at(a)], device_b = places_[at(b)];
  if (p < stages_) {
    std::copy_n(sums_.begin() + p * replicas_, replicas_, undo_.sums.begin());
    change_stage(p, a, device_b);
  }
  if (q < stages_) {
    std::copy_n(sums_.begin() + q * replicas_, replicas_, undo_.sums.begin() + replicas_);
    change_stage(q, b, device_a);
  }
  place(a, device_b);
  place(b, device_a);
  if (!even_speed_) {
    if (p < stages_) stage_[at(p)].slowness = slowness_of(p);
    if (q < stages_) stage_[at(q)].slowness = slowness_of(q);
  }
  // The places that changed before and behind a cut.
  const auto row_of = [&](int stage) { return stage == p ? a % replicas_ : stage == q ? b % replicas_ : -1; };
  const auto column_of = [&](int stage) { return row_of(stage + 1); };
  int saved = 0;
  for (const int stage : {p - 1, p, q - 1, q}) {
    if (stage < 0 || stage + 1 >= stages_) continue;
    std::copy_n(column_.begin() + stage * replicas_, replicas_, undo_.column.begin() + saved++ * replicas_);
    repair(stage, row_of(stage), column_of(stage));
  }
  now_ = total();
}

void Board::undo() {
  const int a = undo_.a, b = undo_.b, p = a / replicas_, q = b / replicas_;
  const int device_a = places_[at(b)], device_b = places_[at(a)];
  place(a, device_a);
  place(b, device_b);
  if (p < stages_) std::copy_n(undo_.sums.begin(), replicas_, sums_.begin() + p * replicas_);
  if (q < stages_) std::copy_n(undo_.sums.begin() + replicas_, replicas_, sums_.begin() + q * replicas_);
  int saved = 0;
  const std::array<int, 4> cuts{p - 1, p, q - 1, q};
  for (const int stage : cuts) saved += stage >= 0 && stage + 1 < stages_ ? 1 : 0;
  // Last first: stages that are neighbours saved the cut between them twice.
  for (auto stage = cuts.rbegin(); stage != cuts.rend(); ++stage) {
    if (*stage < 0 || *stage + 1 >= stages_) continue;
    std::copy_n(undo_.column.begin() + --saved * replicas_, replicas_, column_.begin() + *stage * replicas_);
  }
  std::swap(stage_, undo_.stage);
  std::swap(cut_, undo_.cut);
  now_ = undo_.total;
}

void Board::reorder(int exact) {
  if (stages_ < 3 || !tables_.even()) {
    recompute();
    return;
  }
  std::vector<float> distance(at(stages_) * at(stages_), 0.F), cost(square_);
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
