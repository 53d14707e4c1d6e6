#include "syncopate/sim/steps/buckets.h"
#include "syncopate/sim/steps/strategies.h"

namespace syncopate::sim {
namespace {

constexpr const char* kCodecOfRows = "int8";

class OneBitSteps : public StrategySteps {
 public:
  explicit OneBitSteps(StepParts& parts) : parts_(parts) {
    for (const ParameterProfile& parameter : parts.what.profile.parameters) {
      if (is_table(parameter)) {
        tables_.push_back({.piece = piece_of(parameter), .table = table_of(parameter, parts.what)});
      } else {
        append(dense_, parameter);
      }
    }
    // Of a codec that was not measured the signs' speed is the best guess.
    rows_speed_ = speed_of(parts.what.profile, kCodecOfRows);
    if (rows_speed_.name.empty()) rows_speed_ = parts.averages.speed();
  }

  void write(int64_t) override {
    Workers& workers = parts_.workers;
    Averages& averages = parts_.averages;
    parts_.passes.forward();
    const int sums = parts_.passes.totals();
    std::vector<int> announced;
    for (const Bucket& each : tables_) announced.push_back(announce(workers, each.table));
    parts_.passes.end_backward();
    workers.wait(sums);
    workers.make(workers.all_reduce(8, 8));  // the norm
    std::vector<FlightPtr> flights;
    if (dense_.elements > 0)
      flights.push_back(averages.coded(dense_, averages.codec().bytes, averages.speed(), Account::kExchange));
    const double row_bytes = spec::codec_info(kCodecOfRows).bytes;
    for (size_t i = 0; i < tables_.size(); ++i) {
      workers.wait(announced[i]);
      const Piece rows = take_rows(workers, tables_[i], parts_.what.profile.local, Account::kExchange);
      flights.push_back(averages.coded(rows, row_bytes, rows_speed_, Account::kExchange));
    }
    for (const FlightPtr& flight : flights) averages.finish(flight);
    parts_.passes.finish();
  }

 private:
  StepParts& parts_;
  Piece dense_{};
  std::vector<Bucket> tables_{};
  CodecSpeed rows_speed_{};
};

}  // namespace

std::unique_ptr<StrategySteps> one_bit_steps(StepParts& parts) {
  return std::make_unique<OneBitSteps>(parts);
}

}  // namespace syncopate::sim
