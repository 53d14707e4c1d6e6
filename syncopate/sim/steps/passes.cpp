#include "syncopate/sim/steps/passes.h"

#include <algorithm>
#include <utility>

namespace syncopate::sim {

double Passes::micro_batches() const {
  const spec::RunSpec& spec = what_.spec;
  return static_cast<double>(std::max<int64_t>(1, spec.train.accumulate * spec.micro_batches()));
}

void Passes::cross(Crossing part) {
  for (int worker = 0; worker < workers_.count(); ++worker) {
    const auto replica = static_cast<size_t>(worker);
    (what_.crossings->*part)(step_, what_.stage, replica, workers_.actor(worker),
                             what_.workers[replica].slow);
  }
}

void Passes::forward() {
  const double micro = micro_batches();
  workers_.work(&RankTime::data);
  if (staged()) return cross(&Crossings::until_last_backward);
  if (micro > 1) {
    workers_.work(&RankTime::forward, (micro - 1) / micro);
    workers_.work(&RankTime::backward, (micro - 1) / micro);
  }
  workers_.work(&RankTime::forward, 1 / micro);
}

void Passes::backward(double share) {
  if (staged() && std::exchange(last_begun_, step_) != step_) cross(&Crossings::before_last_backward);
  workers_.work(&RankTime::backward, share / micro_batches());
}

void Passes::end_backward(double share) {
  backward(share);
  if (staged()) cross(&Crossings::behind_last_backward);
  workers_.work(&RankTime::sleep);
}

int Passes::totals(int64_t earlier) {
  const int sums = staged() ? what_.crossings->totals(step_, earlier)
                            : workers_.all_reduce(16.0 * static_cast<double>(2 + earlier), 8);
  workers_.start(sums);
  return sums;
}

void Passes::update() {
  if (staged() && what_.spec.optim.clip > 0) {  // clipping needs the norm of all stages
    for (const Action::Kind kind : {Action::Kind::kStart, Action::Kind::kWait}) {
      for (int worker = 0; worker < workers_.count(); ++worker)
        workers_.put(worker,
                     {.kind = kind, .operation = what_.crossings->norm(step_, static_cast<size_t>(worker))});
    }
  }
  workers_.work(&RankTime::update);
}

void Passes::finish() {
  update();
  workers_.work(&RankTime::other);
}

}  // namespace syncopate::sim
