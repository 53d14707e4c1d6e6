#include "syncopate/sim/events/cores.h"

namespace syncopate::sim {

void Cores::share_messages(int64_t cores, double message_s, double slice_s) {
  free_.assign(static_cast<size_t>(std::max<int64_t>(0, cores)), 0);
  message_s_ = message_s;
  slice_s_ = slice_s;
}

bool Cores::put_off(Event& event) {
  const bool wakes = event.kind == Event::kCredit || event.kind == Event::kData ||
                     event.kind == Event::kDone || event.kind == Event::kGathered;
  if (!wakes || event.waited || free_.empty()) return false;
  event.waited = true;
  event.at = turn(event);
  queue_.put_back(event);
  return true;
}

/// When whoever the event wakes has done with it.
double Cores::turn(const Event& event) {
  const double from = event.at + (computing_ >= free_.size() ? slice_s_ : 0);
  // Wakes a thread that has nothing to copy.
  if (event.kind == Event::kDone || event.kind == Event::kGathered) return from;
  double& core = *std::min_element(free_.begin(), free_.end());
  core = std::max(core, from) + message_s_;
  return core;
}

double Cores::crowd() const {
  if (free_.empty()) return 1;
  return std::max(1.0, static_cast<double>(workers_) / static_cast<double>(free_.size()));
}

bool Cores::begin(int actor, double seconds, double now) {
  ++computing_;
  if (shared_ <= 0) return false;
  reckon(now);
  work_.push_back({actor, seconds});
  expect_next(now);
  return true;
}

void Cores::reckon(double now) {
  for (Work& each : work_) each.left -= (now - reckoned_) * pace();
  reckoned_ = now;
}

void Cores::expect_next(double now) {
  ++version_;
  if (work_.empty()) return;
  const auto next = std::min_element(work_.begin(), work_.end(),
                                     [](const Work& a, const Work& b) { return a.left < b.left; });
  queue_.at(now + std::max(0.0, next->left) / pace(), Event::kWorked, version_, -1);
}

std::vector<int> Cores::through(int version, double now) {
  if (version != version_) return {};
  reckon(now);
  constexpr double kNothing = 1e-12;
  std::vector<int> through;
  for (const Work& each : work_) {
    if (each.left <= kNothing) through.push_back(each.actor);
  }
  std::erase_if(work_, [](const Work& each) { return each.left <= kNothing; });
  expect_next(now);
  return through;
}

}  // namespace syncopate::sim
