#include "syncopate/sim/steps/strategies.h"

namespace syncopate::sim {
namespace {

class StepsByTensor : public StrategySteps {
 public:
  StepsByTensor(StepParts& parts, bool through_root) : parts_(parts), through_root_(through_root) {}

  void write(int64_t) override {
    parts_.passes.forward();
    const int sums = parts_.passes.totals();
    parts_.passes.end_backward();
    parts_.workers.wait(sums);
    for (const Piece& piece : pieces()) {
      if (piece.elements == 0) continue;
      if (through_root_) {
        gather_scatter(piece);
      } else {
        parts_.averages.finish(parts_.averages.start(piece, Account::kExchange));
      }
    }
    parts_.passes.finish();
  }

 private:
  std::vector<Piece> pieces() const {
    const Profile& profile = parts_.what.profile;
    if (parts_.what.spec.strategy.whole) return {whole_model(profile)};
    std::vector<Piece> pieces;
    for (const ParameterProfile& parameter : profile.parameters) pieces.push_back(piece_of(parameter));
    return pieces;
  }

  void gather_scatter(const Piece& piece) {
    Workers& workers = parts_.workers;
    const double bytes = piece.fp32_bytes();
    const int gathered = workers.engine().gather(bytes, 0, workers.group());
    const int scattered = workers.engine().scatter(bytes, 0, workers.group());
    workers.make(gathered);
    const double adding = bytes * (workers.count() - 1) / bytes_per_s(parts_.what.profile.local.reduce_gbyte);
    workers.compute(Account::kExchange, [&](int worker) { return worker == 0 ? adding : 0; });
    workers.make(scattered);
  }

  StepParts& parts_;
  bool through_root_;
};

}  // namespace

std::unique_ptr<StrategySteps> steps_by_tensor(StepParts& parts, bool through_root) {
  return std::make_unique<StepsByTensor>(parts, through_root);
}

}  // namespace syncopate::sim
