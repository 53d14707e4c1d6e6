#include "syncopate/plan/room.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::plan {
namespace {

/// All devices: those of the layout by stage and replica, then those without a place.
std::vector<int> places_of(const Problem& problem, const Layout& layout) {
  std::vector<int> places = layout.device;
  std::vector<bool> used(at(problem.devices()));
  for (const int device : places) used[at(device)] = true;
  for (int device = 0; device < problem.devices(); ++device) {
    if (!used[at(device)]) places.push_back(device);
  }
  return places;
}

/// Gives the stages that need most their devices first: whoever holds them holds the others too.
void make_fit(const Problem& problem, const Room& room, std::vector<int>& places) {
  std::vector<int> stages(at(problem.stages));
  std::iota(stages.begin(), stages.end(), 0);
  std::stable_sort(stages.begin(), stages.end(),
                   [&](int a, int b) { return room.needs[at(a)] > room.needs[at(b)]; });
  std::vector<bool> settled(places.size());
  for (const int stage : stages) {
    const int first = stage * problem.replicas;
    for (int place = first; place < first + problem.replicas; ++place) settled[at(place)] = true;
    size_t next = 0;
    for (int place = first; place < first + problem.replicas; ++place) {
      if (room.holds(places[at(place)], stage)) continue;
      while (next < places.size() && (settled[next] || !room.holds(places[next], stage))) ++next;
      check(next < places.size(), "a device for every place");
      std::swap(places[at(place)], places[next]);
    }
  }
}

class Descent {
 public:
  Descent(const Problem& problem, const Room& room, std::vector<int> places)
      : problem_(problem), room_(room), places_(std::move(places)), now_(measured()) {}

  /// Until no two devices gain by changing places, or `left` layouts have been looked at.
  Found run(int64_t& left) {
    int64_t looked = 0;
    for (bool better = true; better && left > 0;) {
      better = false;
      for (int a = 0; a < problem_.places() && left > 0; ++a) {
        for (int b = a + 1; b < problem_.devices() && left > 0; ++b) {
          if (!may_change(a, b)) continue;
          --left;
          ++looked;
          better = try_change(a, b) || better;
        }
      }
    }
    return {layout(), now_, looked};
  }

 private:
  Layout layout() const {
    return {problem_.stages, problem_.replicas, {places_.begin(), places_.begin() + problem_.places()}};
  }
  Cost measured() const { return evaluate(problem_, layout()); }
  bool holds(int device, int place) const {
    return place >= problem_.places() || room_.holds(device, place / problem_.replicas);
  }
  bool may_change(int a, int b) const { return holds(places_[at(a)], b) && holds(places_[at(b)], a); }
  bool try_change(int a, int b) {
    std::swap(places_[at(a)], places_[at(b)]);
    const Cost cost = measured();
    constexpr double kLess = 1 - 1e-9;
    // Of layouts that tie the one with the lesser mean, from which there may be a way on.
    if (cost.total_s < now_.total_s * kLess ||
        (cost.total_s <= now_.total_s && cost.mean_s < now_.mean_s * kLess)) {
      now_ = cost;
      return true;
    }
    std::swap(places_[at(a)], places_[at(b)]);
    return false;
  }

  const Problem& problem_;
  const Room& room_;
  std::vector<int> places_;
  Cost now_;
};

}  // namespace

double Room::most() const { return *std::max_element(needs.begin(), needs.end()); }
double Room::least() const { return *std::min_element(needs.begin(), needs.end()); }

Shortage shortage(const Room& room, int replicas) {
  std::vector<double> needs = room.needs, has = room.has;
  for (double& each : has) {
    if (each == 0) each = std::numeric_limits<double>::infinity();
  }
  std::sort(needs.begin(), needs.end(), std::greater<>());
  std::sort(has.begin(), has.end(), std::greater<>());
  Shortage found;
  for (size_t k = 0; k < needs.size() && !found.any(); ++k) {
    if (k + 1 < needs.size() && needs[k + 1] == needs[k]) continue;  // all that need as much together
    const auto end = std::upper_bound(has.begin(), has.end(), needs[k], std::greater<>());
    found = {needs[k], static_cast<int>(k + 1) * replicas, static_cast<int>(end - has.begin())};
  }
  return found;
}

Found fitted(const Problem& problem, const Room& room, const Layout& layout, const Effort& effort) {
  // As many layouts as take about a second, or a tenth where many shapes are looked at.
  const double pairs = static_cast<double>(problem.places()) * (problem.replicas + 2);
  auto left = static_cast<int64_t>((effort.share < 0.1 ? 2e7 : 2e8) / pairs);
  constexpr int kFew = 16, kStarts = 8;
  const int random = problem.devices() <= kFew ? kStarts : 1;
  Found best;
  for (int start = 0; start <= random; ++start) {
    std::vector<int> places =
        places_of(problem, start == 0 ? layout : random_layout(problem, mix_key(effort.seed, 6, start)));
    make_fit(problem, room, places);
    int64_t share = left / (random + 1 - start);
    left -= share;
    Found found = Descent(problem, room, std::move(places)).run(share);
    left += share;
    found.moves += best.moves;
    if (start == 0 || found.cost.total_s < best.cost.total_s) {
      best = std::move(found);
    } else {
      best.moves = found.moves;
    }
  }
  return best;
}

}  // namespace syncopate::plan
