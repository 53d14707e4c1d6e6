#pragma once

#include <functional>
#include <vector>

#include "syncopate/sim/engine.h"
#include "syncopate/sim/steps.h"

namespace syncopate::sim {

/// The actors of all workers, or of all replicas of a stage: most actions are written for all of them at
/// once. The engine and what the steps are written for must outlive it.
class Workers {
 public:
  using Seconds = std::function<double(int worker)>;

  Workers(Engine& engine, const StepsOf& what);

  Engine& engine() { return engine_; }
  int count() const { return static_cast<int>(actors_.size()); }
  int actor(int worker) const { return actors_[static_cast<size_t>(worker)]; }
  int group() const { return group_; }  ///< of operations among them

  /// An all-reduce among them that is not begun yet.
  int all_reduce(double bytes, int element_bytes) { return engine_.all_reduce(bytes, element_bytes, group_); }

  void mark() { all({.kind = Action::Kind::kMark}); }
  void start(int operation) { all({.kind = Action::Kind::kStart, .operation = operation}); }
  void wait(int operation) { all({.kind = Action::Kind::kWait, .operation = operation}); }
  void make(int operation);  ///< from its start to its end

  void compute(Account account, const Seconds& seconds);
  void spend(Account account, double seconds);
  /// A share of one part of their own steps.
  void work(double RankTime::*part, double share = 1);

  /// For one of them.
  void put(int worker, const Action& action) { engine_.script(actor(worker)).push_back(action); }

 private:
  void all(const Action& action);

  Engine& engine_;
  const StepsOf& what_;
  std::vector<int> actors_{};
  int group_ = 0;
};

}  // namespace syncopate::sim
