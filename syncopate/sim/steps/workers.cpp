#include "syncopate/sim/steps/workers.h"

namespace syncopate::sim {

Workers::Workers(Engine& engine, const StepsOf& what) : engine_(engine), what_(what) {
  for (size_t place = 0; place < what.workers.size(); ++place)
    actors_.push_back(engine.actor(what.ranks.empty() ? static_cast<int>(place) : what.ranks[place]));
  if (what.crossings != nullptr) group_ = engine.group(what.ranks);
}

void Workers::all(const Action& action) {
  for (int worker = 0; worker < count(); ++worker) put(worker, action);
}

void Workers::make(int operation) {
  start(operation);
  wait(operation);
}

void Workers::compute(Account account, const Seconds& seconds) {
  for (int worker = 0; worker < count(); ++worker)
    put(worker, {.kind = Action::Kind::kCompute, .account = account, .seconds = seconds(worker)});
}

void Workers::spend(Account account, double seconds) {
  all({.kind = Action::Kind::kCompute, .account = account, .seconds = seconds});
}

void Workers::work(double RankTime::*part, double share) {
  for (int worker = 0; worker < count(); ++worker)
    put(worker, {.kind = Action::Kind::kCompute,
                 .account = part == &RankTime::data ? Account::kData : Account::kCompute,
                 .seconds = share * (what_.workers[static_cast<size_t>(worker)].*part),
                 .asleep = part == &RankTime::sleep});
}

}  // namespace syncopate::sim
