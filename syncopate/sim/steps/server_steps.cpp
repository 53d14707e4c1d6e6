#include <algorithm>

#include "syncopate/sim/steps/strategies.h"

namespace syncopate::sim {
namespace {

/// A server's part.
struct Shard {
  double elements = 0;  ///< of the model
  double sent = 0;      ///< of the gradient, where rows are left out
  double runs = 0;      ///< stretches that it is sent in; 0: whole
};

Shard shard_of(const StepsOf& what) {
  const auto servers = static_cast<double>(what.spec.servers());
  double elements = 0, sent = 0, runs = 1;
  for (const ParameterProfile& parameter : what.profile.parameters) {
    const auto all_of_it = static_cast<double>(laid_out(parameter));
    elements += all_of_it;
    if (!what.spec.strategy.sparse_rows || !is_table(parameter)) {
      sent += all_of_it;
      continue;
    }
    const auto workers = static_cast<double>(what.workers.size());
    const double rows = rows_read(parameter, what.profile, what.global_batch / workers);
    sent += rows * static_cast<double>(parameter.shape[1]);
    runs += rows;
  }
  const bool whole = 4 * sent > 3 * elements;
  return {.elements = elements / servers,
          .sent = (whole ? elements : sent) / servers,
          .runs = whole ? 0 : runs / servers};
}

class ServerSteps : public StrategySteps {
 public:
  explicit ServerSteps(StepParts& parts)
      : parts_(parts),
        engine_(parts.workers.engine()),
        shard_(shard_of(parts.what)),
        together_(parts.what.spec.staleness_bound() == 0) {
    for (int server = 0; server < static_cast<int>(parts.what.spec.servers()); ++server) {
      threads_.emplace_back();
      for (int worker = 0; worker < workers(); ++worker)
        threads_.back().push_back(engine_.actor(rank_of(server)));
    }
  }

  void write(int64_t) override {
    parts_.passes.forward();
    const int sums = together_ ? parts_.passes.totals() : -1;
    parts_.passes.end_backward();
    if (together_) parts_.workers.wait(sums);
    for (int worker = 0; worker < workers(); ++worker) update(worker);
    parts_.workers.work(&RankTime::other);
  }

 private:
  static constexpr double kRequest = 64, kReply = 16, kRun = 16;  // bytes
  using Kind = Action::Kind;

  int workers() const { return parts_.workers.count(); }
  int rank_of(int server) const { return workers() + server; }
  void put(int actor, Kind kind, int operation) {
    engine_.script(actor).push_back({.kind = kind, .operation = operation});
  }
  void make(int actor, int operation) {
    put(actor, Kind::kStart, operation);
    put(actor, Kind::kWait, operation);
  }
  double copying_s(double elements) const {
    return 4 * elements / bytes_per_s(parts_.what.profile.local.copy_gbyte);
  }

  /// A worker's gradient to all servers, and their values back.
  void update(int worker) {
    const int mine = parts_.workers.actor(worker);
    std::vector<int> sent, replies, values;
    for (size_t s = 0; s < threads_.size(); ++s) {
      const int server = rank_of(static_cast<int>(s)), thread = threads_[s][static_cast<size_t>(worker)];
      std::vector<int> pushed{engine_.message(worker, server, kRequest)};
      if (shard_.runs > 0) pushed.push_back(engine_.message(worker, server, kRun * shard_.runs));
      pushed.push_back(engine_.message(worker, server, 4 * shard_.sent));
      if (shard_.runs > 0) {
        parts_.workers.put(
            worker,
            {.kind = Kind::kCompute, .account = Account::kExchange, .seconds = copying_s(shard_.sent)});
      }
      for (const int message : pushed) {
        put(mine, Kind::kStart, message);
        make(thread, message);
        sent.push_back(message);
      }
      serve(thread, static_cast<int>(s));
      replies.push_back(engine_.message(server, worker, kReply));
      values.push_back(engine_.message(server, worker, 4 * shard_.elements));
      make(thread, replies.back());
      make(thread, values.back());
    }
    for (const int message : sent) put(mine, Kind::kWait, message);
    for (const int message : replies) make(mine, message);
    for (const int message : values) put(mine, Kind::kStart, message);
    for (const int message : values) put(mine, Kind::kWait, message);
  }

  /// What a server does with a gradient: one at a time, or once all are there.
  void serve(int thread, int server) {
    std::vector<Action>& script = engine_.script(thread);
    const StepsOf& what = parts_.what;
    double update_s = 0;
    for (const RankTime& worker : what.workers) update_s = std::max(update_s, worker.update);
    update_s *= shard_.elements / std::max(1.0, static_cast<double>(what.profile.elements()));
    if (together_) {
      script.push_back({.kind = Kind::kMeet, .operation = server, .actors = workers()});
      update_s += 4 * shard_.elements * (workers() - 1) / bytes_per_s(what.profile.local.reduce_gbyte);
    }
    script.push_back({.kind = Kind::kLock, .operation = server});
    script.push_back({.kind = Kind::kCompute, .seconds = together_ ? update_s / workers() : update_s});
    script.push_back({.kind = Kind::kCompute, .seconds = copying_s(shard_.elements)});
    script.push_back({.kind = Kind::kUnlock, .operation = server});
  }

  StepParts& parts_;
  Engine& engine_;
  Shard shard_;                              ///< all servers' are alike
  bool together_;                            ///< all workers wait for each other
  std::vector<std::vector<int>> threads_{};  ///< actors, by server, then worker
};

}  // namespace

std::unique_ptr<StrategySteps> server_steps(StepParts& parts) { return std::make_unique<ServerSteps>(parts); }

}  // namespace syncopate::sim
