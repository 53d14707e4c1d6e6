#include "syncopate/sim/steps/buckets.h"
#include "syncopate/sim/steps/strategies.h"

namespace syncopate::sim {
namespace {

class OverlappedSteps : public StrategySteps {
 public:
  explicit OverlappedSteps(StepParts& parts) : parts_(parts), buckets_(buckets_of(parts.what)) {}

  void write(int64_t) override {
    Workers& workers = parts_.workers;
    parts_.passes.forward();
    const int sums = parts_.passes.totals();
    std::vector<int> announced;
    for (const Bucket& bucket : buckets_)
      announced.push_back(bucket.table.rows > 0 ? announce(workers, bucket.table) : -1);
    std::vector<FlightPtr> flights;
    const auto launch = [&](size_t i, Account account) {
      const Bucket& bucket = buckets_[i];
      Piece piece = bucket.piece;
      if (announced[i] >= 0) {
        workers.wait(announced[i]);
        piece = take_rows(workers, bucket, parts_.what.profile.local, account);
      }
      flights.push_back(parts_.averages.start(piece, account));
    };
    double done = 0;
    if (parts_.what.spec.strategy.overlap) {
      for (size_t i = 0; i < buckets_.size(); ++i) {
        parts_.passes.backward(buckets_[i].ready - done);
        done = buckets_[i].ready;
        launch(i, Account::kCompute);
      }
    }
    parts_.passes.end_backward(1 - done);
    workers.wait(sums);
    for (size_t i = flights.size(); i < buckets_.size(); ++i) launch(i, Account::kExchange);
    for (const FlightPtr& flight : flights) parts_.averages.finish(flight);
    parts_.passes.finish();
  }

 private:
  StepParts& parts_;
  std::vector<Bucket> buckets_;
};

}  // namespace

std::unique_ptr<StrategySteps> overlapped_steps(StepParts& parts) {
  return std::make_unique<OverlappedSteps>(parts);
}

}  // namespace syncopate::sim
