#include <algorithm>
#include <utility>

#include "syncopate/sim/steps/strategies.h"

namespace syncopate::sim {
namespace {

/// Fragments of the model in turn, each averaged once in a period; it is there `delay` steps after it was
/// sent.
class LocalSteps : public StrategySteps {
 public:
  explicit LocalSteps(StepParts& parts) : parts_(parts), spec_(parts.what.spec) {
    const auto& settings = spec_.strategy;
    delay_ = settings.overlap_average && settings.delay == 0 ? settings.every / 2 : settings.delay;
    fragments_ = std::max<int64_t>(1, settings.fragments);
    apart_ = settings.every / fragments_;
    pieces_ = cut_model(parts.what.profile, fragments_);
    in_flight_.resize(static_cast<size_t>(delay_) + 1);
  }

  void write(int64_t step) override {
    Workers& workers = parts_.workers;
    const int64_t done = step + 1;
    const bool starts = done % apart_ == 0;
    parts_.passes.forward();
    int sums = -1, counted = -1;
    if (starts) {
      sums = parts_.passes.totals(apart_ - 1);
      counted = workers.all_reduce(8, 8);
      workers.start(counted);
    }
    parts_.passes.end_backward();
    if (starts) workers.wait(sums);
    parts_.passes.update();
    if (delay_ == 0 && starts) launch(done, counted);
    if (done > delay_) finish(done - delay_);
    if (delay_ > 0 && starts) launch(done, counted);
    workers.work(&RankTime::other);
  }

 private:
  void launch(int64_t done, int counted) {
    parts_.workers.wait(counted);
    const Piece& piece = pieces_[static_cast<size_t>((done / apart_ - 1) % fragments_)];
    // Weighted, and where differences are sent taken from the anchor.
    pass_over(piece, 2);
    std::vector<FlightPtr>& flights = started_at(done);
    if (spec_.strategy.moments == "average") {
      const std::string& optimizer = spec_.optim.name;
      const int moments = optimizer == "adamw" || optimizer == "lamb" ? 2 : 1;
      for (int moment = 0; moment < moments; ++moment) flights.push_back(parts_.averages.sum(piece));
    }
    flights.push_back(parts_.averages.start(piece, Account::kExchange));
  }

  void finish(int64_t step) {
    for (const FlightPtr& flight : std::exchange(started_at(step), {})) {
      parts_.averages.finish(flight);
      pass_over(flight->piece, spec_.strategy.name == "diloco" ? 4 : 1);
    }
  }

  /// So many times an array read and written.
  void pass_over(const Piece& piece, int times) {
    parts_.workers.spend(Account::kExchange,
                         times * piece.fp32_bytes() / bytes_per_s(parts_.what.profile.local.copy_gbyte));
  }

  std::vector<FlightPtr>& started_at(int64_t step) {
    return in_flight_[static_cast<size_t>(step % (delay_ + 1))];
  }

  StepParts& parts_;
  const spec::RunSpec& spec_;
  int64_t delay_, fragments_, apart_;
  std::vector<std::vector<FlightPtr>> in_flight_{};  ///< by step, modulo the delay
  std::vector<Piece> pieces_{};                      ///< of the model, a fragment each
};

}  // namespace

std::unique_ptr<StrategySteps> local_steps(StepParts& parts) { return std::make_unique<LocalSteps>(parts); }

}  // namespace syncopate::sim
