#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// A strategy in which workers make updates whenever they are ready. The work is a row of numbered
/// mini-batches (tickets), one update each; whoever is ready takes the next. It is done in sections, between
/// which all workers hold the same parameters: that is when a run is evaluated and saved.
class FreeRunning : public Strategy {
 public:
  Traits traits() const override { return {.replicas_differ = false, .counts_apart = true}; }
  bool exchanges(int64_t) const override { return false; }  // what they say, they say between themselves
  bool updates_locally(int64_t) const override { return true; }

  /// The tickets `first`..`last`-1 are to be taken. Collective.
  virtual void open(Replica& replica, int64_t first, int64_t last) = 0;
  /// The next ticket for this worker; nothing: the section is used up, or some worker asked to stop. `stop`:
  /// this worker does.
  virtual std::optional<int64_t> take(bool stop) = 0;
  /// Collective: every update has arrived and every replica holds the same parameters. Returns how many
  /// tickets were taken since the section was opened, by all; the next section goes on after them.
  virtual int64_t close(Replica& replica) = 0;
  /// By worker: how stale its updates were so far. Outside of a section; the same on every worker.
  /// Collective.
  virtual std::vector<std::vector<int64_t>> staleness() = 0;
};

}  // namespace syncopate::parallel
